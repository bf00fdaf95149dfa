// What speaks against a translation. Translator.kt needs this file.

/** A reason to look again; no proof: a name may stay as it is, and "20" may become "vingt". */
enum class Doubt {
    /** The geometric mean of its tokens' probabilities is below 0.6. */
    UNLIKELY,

    /** A number above 12, a web or an e-mail address of the text is not in it. */
    MISSING,

    /** Its letters are those of the text. */
    UNCHANGED,

    /** The model's vocabulary has less than half of the text. */
    UNKNOWN,
}

private val ADDRESS = Regex(
    """(?:https?://|www\.)[^\s<>]*[^\s<>.,;:!?'"“”’»()\[\]]""" +
        """|[^\s@<>()\[\],;:'"“”«]+@[^\s@<>]+\.[A-Za-z]+"""
)
private val THOUSANDS =
    Regex("(?<![0-9])[0-9]{1,3}(?:[.,'’ \u00a0\u202f][0-9]{3})+(?![0-9])")
private val NUMBER = Regex("(?<![0-9])(?:[0-9]{3,}|[2-9][0-9]|1[3-9])(?![0-9])")

/**
 * The doubts of a sentence; [probability] and [known] are outputs of the file, and null in
 * files of versions up to 0.8.0.
 */
internal fun doubts(
    source: String,
    translation: String,
    probability: Float? = null,
    known: Float? = null,
): Set<Doubt> = buildSet {
    if (probability != null && probability < 0.6f) add(Doubt.UNLIKELY)
    val isThere = ADDRESS.findAll(source).all { it.value in translation }
    if (!isThere || !numbers(translation).containsAll(numbers(source))) add(Doubt.MISSING)
    val hasWords = letters(ADDRESS.replace(source, "")).isNotEmpty()
    if (hasWords && letters(source) == letters(translation)) add(Doubt.UNCHANGED)
    if (known != null && known < 0.5f) add(Doubt.UNKNOWN)
}

/** The numbers above 12, without separators of thousands. */
private fun numbers(text: String): Set<String> {
    val plain = THOUSANDS.replace(text) { match -> match.value.filter { it in '0'..'9' } }
    return NUMBER.findAll(plain).map { it.value }.toSet()
}

private fun letters(text: String) = Regex("\\P{L}+").replace(text, "").lowercase()
