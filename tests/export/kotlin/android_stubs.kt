// What export/android/Translator.kt uses of Android, as it is documented.

package android.content

import android.content.res.AssetManager

open class Context {
    open val assets: AssetManager = AssetManager()
}
