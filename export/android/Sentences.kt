// Texts to sentences, as all callers of keras_vanilla cut them; a part of Translator.kt.

private const val SPACE = """[\s\p{Z}]"""

// An end mark, closing quotes, white space, opening quotes or a dash, and a word; Chinese,
// Japanese, Khmer and Burmese marks need no space after them.
private val END = Regex(
    """[.!?…؟۔।॥։።](?:$SPACE?»|["'”’“›«‹)\]])*$SPACE+""" +
        """(?=(?:["'“‘„‚«»‹(\[¿¡–—-]$SPACE?)*([\p{L}\p{N}_]+))""" +
        """|[。！？｡။។]+[」』”’）]*$SPACE*(?=[^\s\p{Z}])""",
)
private const val LONGEST_WORD = 40 // before a full stop; longer ones are not abbreviations
private val BEFORE_WORD =
    Regex("""^["'’“‘„‚«»‹(\[¿¡]*(?:(?:[dl]|dell|all)['’])?""", RegexOption.IGNORE_CASE)

// One letter, letters between full stops, or a short number (German "am 5. Mai").
private val SHORT = Regex("""\p{L}|\p{L}{1,4}(?:\.-?\p{L}{1,4})+|\p{Nd}{1,2}""")
private val COUNTED = Regex("""\p{Nd}+|[\p{L}\p{N}_]\.""")

// An abbreviation with a capital here is another word without it; the others are found in
// any case.
private val ABBREVIATIONS = words(
    """
    Adm Amb approx aprox Atty av avv bd bijv boul Brig bzgl bzw ca Capt Cdr Cdt cf
    Cmdr Cne Col Cpl dhr dipl dott dr dra drs dt dña ehem ej engl env evtl exkl fr
    frz Ft geb Gen gest ggf Gov Gén Hon hr hrn ing inkl Insp Lic Lt Maj Mdm Messrs
    mevr Mgr mio mlle mlles MM mme mmes mr mrd mrs ms Mt Mx Pr Pres prof Profs Pvt
    Rep Rev röm Sen Sgt Sig sog sr sra sres srta St Ste Supt tsd ud uds vgl viz vs
    zzgl österr
    """,
)
private val BEFORE_NUMBER = words(
    """
    abb abs al alt anh anm app art arts aufl bd bde bl blz cap ch chap chaps col
    cols ed eds eq eqs est ext fasc fig figs fn hab hg inv jg kap lfd lib max min
    mind no nos nr núm op pag pagg par pos pp pág págs rd ref refs rev rn rs réf sec
    secs sect str tab tel tit tél ver vers vol vols ziff zit éd
    """,
)
private val MONTHS = words(
    """
    jan janv ene gen feb febr fév févr mär mrz mar mrt apr avr abr jun jul juil aug
    sep sept okt oct ott nov dez dec déc dic
    """,
)
private val DAY = Regex("""\p{Nd}{1,2}(?:\.|er|st|nd|rd|th)?""")
private val HOUR = Regex("""[ap]\.m""", RegexOption.IGNORE_CASE)
private val NUMBER = Regex("""\p{Nd}.*|[IVXLC]{2,}""")

// Words that continue a time of day (weekdays, time zones) or the name of a company.
private val AFTER_HOUR = Regex("[A-Z]{2,5}|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day")
private val AFTER_NAME = Regex("Inc|Ltd|Corp|Co|LLC|LLP|GmbH|AG")

/** The sentences of each line, with the white space after them. */
internal fun sentences(text: String): List<String> =
    text.split(Regex("(?<=\n)")).flatMap { line ->
        val ends = END.findAll(line).filter { isEnd(line, it) }.map { it.range.last + 1 }
        (listOf(0) + ends + line.length).zipWithNext { start, end -> line.substring(start, end) }
    }.filter { it.isNotEmpty() }

private fun isEnd(text: String, end: MatchResult): Boolean {
    val following = end.groups[1]?.value ?: return true // the mark was Chinese or Japanese
    if (following[0].isLowerCase()) return false
    val mark = end.value[0]
    if (mark != '.') return mark != '!' || !AFTER_NAME.matches(following) // "Yahoo! Inc."
    val near = text.substring(maxOf(0, end.range.first - LONGEST_WORD), end.range.first)
    val words = near.split(Regex("$SPACE+")).filter { it.isNotEmpty() }
    val (previous, word) =
        (listOf("", "") + words.map { it.replaceFirst(BEFORE_WORD, "") }).takeLast(2)
    if (HOUR.matches(word)) return !AFTER_HOUR.matches(following)
    if (SHORT.matches(word)) { // an end only as in "Bd. 3. Dort"
        val counted = COUNTED.matches(previous) || BEFORE_NUMBER.has(previous.trimEnd('.'))
        return word[0].isDigit() && counted
    }
    if (ABBREVIATIONS.has(word)) return false
    val isMonth = MONTHS.has(word)
    if (isMonth && DAY.matches(previous)) return false
    return !((isMonth || BEFORE_NUMBER.has(word)) && NUMBER.matches(following))
}

private fun words(list: String): Set<String> = list.trim().split(Regex("\\s+")).toSet()

private fun Set<String>.has(word: String) = word in this || word.lowercase() in this
