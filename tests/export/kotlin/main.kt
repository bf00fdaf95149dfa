// Prints what the caller says, a line for each check; test_kotlin_caller.py reads them.

import android.content.Context
import java.io.File
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking

fun main(arguments: Array<String>) = runBlocking {
    val file = File(arguments[0])
    val translator = Translator(file, threads = 3)
    suspend fun said(text: String) =
        runCatching { translator.translate(text).toString() }.getOrElse { it.message }
    fun show(name: String, value: Any?) = println("$name: ${value.toString().replace("\n", "\\n")}")

    show("text", said("one two. Three four!\n\nfive\nsix. "))
    show("chinese", said("一二。三"))
    show("nothing", said(" \n "))
    val rows = File(arguments[2]).readLines().filter { it.isNotEmpty() && it[0] != '#' }
    show("wrong sentences", rows.map { it.split("|") }.filter { sentences(it.joinToString("")) != it })
    val table = File(arguments[3]).readLines().filter { it.isNotEmpty() && it[0] != '#' }
    show("wrong doubts", table.map { it.split("\t") }.filter { (source, translation, expected) ->
        doubts(source, translation).joinToString(" ") { it.name.lowercase() } != expected
    })
    show("cut", said("one. cut it. Two"))
    show("bytes", said("One. " + "X".repeat(41)))
    show("tokens", said("One. " + "X".repeat(31)))
    val ofAsset = Translator(Context(), arguments[0])
    show("asset", ofAsset.use { it.translate("One. Two").text })
    show("threads", org.tensorflow.lite.threads)

    val texts = (0 until 40).map { "Text $it. And $it" }
    val all = texts.map { async { translator.translate(it).text } }.awaitAll()
    show("own", all == texts.map { it.uppercase() })

    val kept = File("${arguments[0]}.kept")
    update(file.toURI().toURL(), arguments[1], kept)
    show("updated", kept.readBytes().contentEquals(file.readBytes()))
    kept.writeText("older")
    val refused = runCatching { update(file.toURI().toURL(), "0".repeat(64), kept) }
    show("refused", refused.isFailure && kept.readText() == "older")

    org.tensorflow.lite.runs = 0
    val long = launch { translator.translate("One. ".repeat(1000)) }
    while (org.tensorflow.lite.runs == 0) delay(5)
    long.cancelAndJoin()
    show("cancelled", org.tensorflow.lite.runs < 1000)
    show("after", said("still there"))

    org.tensorflow.lite.saysTokens = true
    show("tokens of", translator.translate(" Grüße 猫. \n\nx y").tokens.joinToString("|") {
        "${it.text},${it.sourceStart},${it.sourceEnd},${it.confidence}"
    })

    show("doubts of", translator.translate("x").doubts)

    translator.close()
    show("closed", said("a"))
    while (org.tensorflow.lite.open > 0) delay(5) // `close` does not wait
    show("open", org.tensorflow.lite.open)
}
