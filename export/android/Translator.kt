// Texts to translations with one .tflite file of keras_vanilla; minSdk 24:
//   implementation("com.google.ai.edge.litert:litert:2.3.0")  // 2.1.0 or later, not 2.0
//   implementation("org.jetbrains.kotlinx:kotlinx-coroutines-android:1.10.2")
// Compiled and run by tests/export/test_kotlin_caller.py beside stubs of Android and LiteRT,
// not on a phone.
import android.content.Context
import java.io.File
import java.io.FileInputStream
import java.nio.ByteBuffer
import java.nio.FloatBuffer
import java.nio.channels.FileChannel.MapMode.READ_ONLY
import kotlin.coroutines.EmptyCoroutineContext
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.withContext
import org.tensorflow.lite.InterpreterApi

/**
 * [truncated]: a sentence reached the longest output before its end. [tokens]: see Tokens.kt.
 * [doubts]: what speaks against a sentence, see Doubts.kt.
 */
data class Translation(
    val text: String,
    val truncated: Boolean,
    val tokens: List<Token>,
    val doubts: Set<Doubt>,
)

/** Make one and keep it: the file is opened with the first text, off the UI thread. */
class Translator private constructor(private val open: () -> Model) : AutoCloseable {
    @OptIn(ExperimentalCoroutinesApi::class) // before coroutines 1.9
    private val oneAtATime = Dispatchers.Default.limitedParallelism(1)
    private var model: Model? = null
    private var closed = false

    /** A file of the app's assets. */
    constructor(context: Context, asset: String, threads: Int = 1) : this({
        context.assets.openFd(asset).use {
            val channel = it.createInputStream().channel
            Model(channel.map(READ_ONLY, it.startOffset, it.length), threads)
        }
    })

    /** A downloaded file: compare its SHA-256 first. */
    constructor(file: File, threads: Int = 1) : this({
        FileInputStream(file).channel.use { Model(it.map(READ_ONLY, 0, it.size()), threads) }
    })

    /**
     * Translates sentence by sentence, and keeps the lines. A coroutine that is cancelled ends
     * after a sentence. Throws IllegalArgumentException if a sentence is too long or the file
     * is damaged, and IllegalStateException after [close].
     */
    suspend fun translate(text: String): Translation =
        withContext(oneAtATime) {
            check(!closed) { "The translator is closed" }
            val model = model ?: open().also { model = it }
            val (joined, tokens) = StringBuilder() to mutableListOf<Token>()
            val doubts = mutableSetOf<Doubt>()
            var (cut, begin) = false to 0
            for (piece in sentences(text)) {
                ensureActive()
                val result = model.run(piece.trim())
                tokens += result.tokens.map { it.movedBy(begin + piece.indexOf(piece.trim())) }
                begin += piece.length
                joined.append(result.text).append(spaceAfter(piece, result.text))
                cut = cut || result.truncated
                doubts += result.doubts
            }
            Translation(joined.trim().toString(), cut, tokens, doubts)
        }

    /** Frees the memory, after the texts that wait; does not block. */
    override fun close() = oneAtATime.dispatch(EmptyCoroutineContext) {
        closed = true
        model?.interpreter?.close()
        model = null
    }
}

private val JUDGED = listOf("probability", "known") // since 0.9.0

/** The open file. */
private class Model(bytes: ByteBuffer, threads: Int) {
    val interpreter = InterpreterApi.create(bytes, InterpreterApi.Options().setNumThreads(threads))
    val maxBytes = interpreter.getInputTensorFromSignature("text", "translate").numBytes()
    val size = interpreter.getOutputTensorFromSignature("text", "translate").numBytes()
    val tokens = interpreter.getOutputTensorFromSignature("ids", "translate").numElements()
    val endId = bytes.duplicate().run { // the description is at the end of the file
        position(maxOf(0, limit() - 65_536))
        val description = ByteArray(remaining()).also { get(it) }.toString(Charsets.ISO_8859_1)
        Regex("\"end_id\": (\\d+)").find(description)?.run { groupValues[1].toInt() }
    }

    fun run(sentence: String): Translation {
        if (sentence.isEmpty()) return Translation("", false, emptyList(), emptySet())
        val octets = sentence.encodeToByteArray()
        require(octets.size <= maxBytes) { "A sentence has ${octets.size} bytes, at most $maxBytes" }
        val (text, ids, score) = Triple(ByteArray(size), IntArray(tokens), FloatBuffer.allocate(1))
        val tokenOutputs = TokenOutputs(interpreter, tokens)
        val judged = JUDGED.filter { it in interpreter.getSignatureOutputs("translate") }
            .associateWith { FloatBuffer.allocate(1) }
        val outputs = mapOf("text" to text, "ids" to ids, "score" to score) + judged +
            tokenOutputs.buffers
        val input = mapOf<String, Any>("text" to octets.copyOf(maxBytes)) // zeros behind it
        interpreter.runSignature(input, outputs, "translate")
        require(!score.get(0).isNaN()) { "A sentence has more tokens than the file takes" }
        val translation = text.decodeToString(0, text.indexOfLast { it != 0.toByte() } + 1)
        val cut = translation.isNotEmpty() && endId != null && endId !in ids // 0.5.0 has no endId
        val (probability, known) = JUDGED.map { judged[it]?.get(0) }
        val doubts = doubts(sentence, translation, probability, known)
        return Translation(translation, cut, tokenOutputs.tokens(octets, text), doubts)
    }
}

private fun spaceAfter(piece: String, translation: String): String =
    piece.substring(piece.trimEnd().length).ifEmpty {
        if (translation.isNotEmpty() && translation.last() >= '\u3000') "" else " "
    }
