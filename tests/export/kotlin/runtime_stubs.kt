// What export/android/Translator.kt uses of LiteRT's InterpreterApi, as it is documented.
package org.tensorflow.lite

import java.nio.ByteBuffer
import java.nio.FloatBuffer
import java.nio.IntBuffer

interface Tensor {
    fun numBytes(): Int

    fun numElements(): Int
}

interface InterpreterApi : AutoCloseable {
    class Options {
        fun setNumThreads(numThreads: Int) = apply { threads += numThreads }
    }

    fun getInputTensorFromSignature(inputName: String, signatureKey: String): Tensor

    fun getOutputTensorFromSignature(outputName: String, signatureKey: String): Tensor

    fun getSignatureOutputs(signatureKey: String): Array<String>

    fun runSignature(inputs: Map<String, Any>, outputs: Map<String, Any>, signatureKey: String)

    override fun close()

    companion object {
        @JvmStatic
        fun create(byteBuffer: ByteBuffer, options: Options): InterpreterApi = Echo()
    }
}

private val TOKENS = listOf("text_ends", "source_spans", "confidence", "probability", "known")
val threads = mutableListOf<Int>() // of all options
@Volatile var open = 0 // interpreters
@Volatile var runs = 0
@Volatile var saysTokens = false // as after `export --outputs alignment confidence`

/** Gives back a text in capitals, 3 as its end; a text of more than 30 bytes is refused. */
class Echo : InterpreterApi {
    init {
        open += 1
    }

    private fun sized(bytes: Int) = object : Tensor {
        override fun numBytes() = bytes

        override fun numElements() = bytes / 4
    }

    override fun getInputTensorFromSignature(inputName: String, signatureKey: String) = sized(40)

    override fun getOutputTensorFromSignature(outputName: String, signatureKey: String) = sized(64)

    override fun getSignatureOutputs(signatureKey: String) =
        (listOf("text", "ids", "score") + if (saysTokens) TOKENS else listOf()).toTypedArray()

    override fun runSignature(
        inputs: Map<String, Any>,
        outputs: Map<String, Any>,
        signatureKey: String,
    ) {
        check(open > 0 && signatureKey == "translate")
        check(getSignatureOutputs(signatureKey).toSet().containsAll(outputs.keys))
        Thread.sleep(5)
        runs += 1
        val octets = inputs["text"] as ByteArray
        val text = String(octets, 0, octets.indexOf(0).let { if (it < 0) 40 else it })
        val tooLong = text.encodeToByteArray().size > 30
        val said = if (tooLong) ByteArray(0) else text.uppercase().encodeToByteArray()
        said.copyInto(outputs["text"] as ByteArray)
        if ("cut" !in text) // else the output has no end
            (outputs["ids"] as IntArray)[text.length % 16] = 3
        (outputs["score"] as FloatBuffer).put(0, if (tooLong) Float.NaN else -1f)
        if (saysTokens) describe(text, outputs)
    }

    /** Each token is a word with the space before it, and attends to itself. */
    private fun describe(text: String, outputs: Map<String, Any>) {
        (outputs["probability"] as FloatBuffer).put(0, 0.5f)
        (outputs["known"] as FloatBuffer).put(0, 0.4f)
        val ends = text.indices.filter { it + 1 == text.length || text[it + 1] == ' ' }.map {
            text.take(it + 1).encodeToByteArray().size
        }
        for (i in 0 until 16) {
            val end = ends.getOrElse(i) { ends.lastOrNull() ?: 0 }
            (outputs["text_ends"] as IntBuffer).put(i, end)
            val isReal = i < ends.size
            val begin = if (isReal && i > 0) ends[i - 1] else 0
            (outputs["source_spans"] as IntBuffer).put(2 * i, begin)
            (outputs["source_spans"] as IntBuffer).put(2 * i + 1, if (isReal) end else 0)
            (outputs["confidence"] as FloatBuffer).put(i, if (isReal) 1f / (i + 2) else 0f)
        }
    }

    override fun close() {
        open -= 1
    }
}
