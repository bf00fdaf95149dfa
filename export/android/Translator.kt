// NOT COMPILED HERE. Text in, text out with one .tflite file of keras_vanilla; minSdk 24:
//   implementation("com.google.ai.edge.litert:litert:2.3.0")
//   implementation("org.jetbrains.kotlinx:kotlinx-coroutines-android:1.8.1")
import android.content.Context
import java.nio.FloatBuffer
import java.nio.channels.FileChannel.MapMode.READ_ONLY
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext
import org.tensorflow.lite.InterpreterApi

/** Make one and keep it: the asset is opened with the first text, off the UI thread. */
class Translator(context: Context, asset: String) {
    private val oneAtATime = Mutex() // the interpreter is not thread-safe
    private val interpreter by lazy {
        context.assets.openFd(asset).use {
            val bytes = it.createInputStream().channel.map(READ_ONLY, it.startOffset, it.length)
            InterpreterApi.create(bytes, InterpreterApi.Options())
        }
    }

    /** Throws IllegalArgumentException if the text is too long or the file is damaged. */
    suspend fun translate(source: String): String = oneAtATime.withLock {
        withContext(Dispatchers.Default) {
            val octets = source.encodeToByteArray()
            val limit = interpreter.getInputTensorFromSignature("text", "translate").numBytes()
            require(octets.size <= limit) { "${octets.size} bytes of text, at most $limit" }
            val inputs = mapOf<String, Any>("text" to octets.copyOf(limit)) // zeros behind it
            val size = interpreter.getOutputTensorFromSignature("text", "translate").numBytes()
            val (text, score) = ByteArray(size) to FloatBuffer.allocate(1)
            val outputs = mapOf<String, Any>("text" to text, "score" to score)
            interpreter.runSignature(inputs, outputs, "translate")
            require(!score.get(0).isNaN()) { "The text has more tokens than the file takes" }
            text.decodeToString(0, text.indexOfLast { it != 0.toByte() } + 1)
        }
    }
}
