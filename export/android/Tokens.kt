// What a file of `keras-vanilla export --outputs alignment confidence` says of each token of a
// translation. Translator.kt needs this file.
import java.nio.FloatBuffer
import java.nio.IntBuffer
import org.tensorflow.lite.InterpreterApi

/**
 * A piece of a word: its [text], often with the space before it; the range of the text it was
 * translated from ([sourceStart] until [sourceEnd], in characters of the whole text) to which
 * the model attends most, empty for none; and its probability. Null is what the file does not say.
 */
data class Token(
    val text: String,
    val sourceStart: Int?,
    val sourceEnd: Int?,
    val confidence: Float?,
) {
    internal fun movedBy(shift: Int) =
        copy(sourceStart = sourceStart?.plus(shift), sourceEnd = sourceEnd?.plus(shift))
}

/** Buffers for those of the outputs that a file has. */
internal class TokenOutputs(interpreter: InterpreterApi, count: Int) {
    private val names = interpreter.getSignatureOutputs("translate")
    private val ends = IntBuffer.allocate(count).takeIf { "text_ends" in names }
    private val spans = IntBuffer.allocate(2 * count).takeIf { "source_spans" in names }
    private val confidence = FloatBuffer.allocate(count).takeIf { "confidence" in names }

    val buffers: Map<String, Any> = listOf(
        "text_ends" to ends,
        "source_spans" to spans,
        "confidence" to confidence,
    ).mapNotNull { (name, buffer) -> buffer?.let { name to it } }.toMap()

    /** The tokens that have text, from the bytes of a sentence and of its translation. */
    fun tokens(source: ByteArray, text: ByteArray): List<Token> {
        val ends = ends?.run { List(capacity()) { get(it) } } ?: return emptyList()
        return (listOf(0) + ends).zipWithNext().withIndex()
            .filter { (_, place) -> place.first < place.second }
            .map { (i, place) ->
                Token(
                    text.decodeToString(place.first, place.second),
                    spans?.let { charactersBefore(source, it.get(2 * i)) },
                    spans?.let { charactersBefore(source, it.get(2 * i + 1)) },
                    confidence?.get(i),
                )
            }
    }

    private fun charactersBefore(octets: ByteArray, end: Int) =
        octets.decodeToString(0, end).length
}
