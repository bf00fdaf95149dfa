package android.content.res

import java.io.FileInputStream

class AssetManager {
    /** Here the name of an asset is a path. */
    fun openFd(fileName: String) = AssetFileDescriptor(java.io.File(fileName))
}

class AssetFileDescriptor(private val file: java.io.File) : java.io.Closeable {
    val startOffset = 0L
    val length = file.length()

    fun createInputStream() = FileInputStream(file)

    override fun close() {}
}
