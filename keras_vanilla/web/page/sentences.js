/** Long texts, cut into sentences as `keras_vanilla/data/sentences.py` does, and smaller pieces. */

// An end mark, closing quotes, white space, opening quotes or a dash, and a word; Chinese,
// Japanese, Khmer and Burmese marks need no space after them.
const END = new RegExp(
  String.raw`[.!?…؟۔।॥։።](?:\s?»|["'”’“›«‹)\]])*\s+(?=(?:["'“‘„‚«»‹(\[¿¡–—-]\s?)*([\p{L}\p{N}_]+))` +
    String.raw`|[。！？｡។။]+[」』”’）]*\s*(?=\S)`,
  'gu',
);
const LONGEST_WORD = 40; // before a full stop; longer ones are not abbreviations
const BEFORE_WORD = /^["'’“‘„‚«»‹(\[¿¡]*(?:(?:[dl]|dell|all)['’])?/iu;
// One letter, letters between full stops, or a short number (German "am 5. Mai").
const SHORT = /^(?:\p{L}|\p{L}{1,4}(?:\.-?\p{L}{1,4})+|\p{Nd}{1,2})$/u;
const COUNTED = /^(?:\p{Nd}+|[\p{L}\p{N}_]\.)$/u;
// An abbreviation with a capital here is another word without it; the others are found in
// any case.
const ABBREVIATIONS = words(`
  Adm Amb approx aprox Atty av avv bd bijv boul Brig bzgl bzw ca Capt Cdr Cdt cf
  Cmdr Cne Col Cpl dhr dipl dott dr dra drs dt dña ehem ej engl env evtl exkl fr
  frz Ft geb Gen gest ggf Gov Gén Hon hr hrn ing inkl Insp Lic Lt Maj Mdm Messrs
  mevr Mgr mio mlle mlles MM mme mmes mr mrd mrs ms Mt Mx Pr Pres prof Profs Pvt
  Rep Rev röm Sen Sgt Sig sog sr sra sres srta St Ste Supt tsd ud uds vgl viz vs
  zzgl österr
`);
const BEFORE_NUMBER = words(`
  abb abs al alt anh anm app art arts aufl bd bde bl blz cap ch chap chaps col
  cols ed eds eq eqs est ext fasc fig figs fn hab hg inv jg kap lfd lib max min
  mind no nos nr núm op pag pagg par pos pp pág págs rd ref refs rev rn rs réf sec
  secs sect str tab tel tit tél ver vers vol vols ziff zit éd
`);
const MONTHS = words(`
  jan janv ene gen feb febr fév févr mär mrz mar mrt apr avr abr jun jul juil aug
  sep sept okt oct ott nov dez dec déc dic
`);
const DAY = /^\p{Nd}{1,2}(?:\.|er|st|nd|rd|th)?$/u;
const HOUR = /^[ap]\.m$/i;
const NUMBER = /^(?:\p{Nd}.*|[IVXLC]{2,})$/u;
// Words that continue a time of day (weekdays, time zones) or the name of a company.
const AFTER_HOUR = /^(?:[A-Z]{2,5}|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)$/;
const AFTER_NAME = /^(?:Inc|Ltd|Corp|Co|LLC|LLP|GmbH|AG)$/;

/** Where a text can be cut near its middle, the best places first; 0 for nowhere. */
const CUTS = [
  (text) => middleMatch(text, /(?=\S)(?<=[,;:–—]\s+|[，；：、]\s*)/gu), // after a clause
  (text) => middleMatch(text, /(?=\S)(?<=\s)/gu),
  (text) => middleSegment(text, 'word'), // in a language that is written without spaces
  (text) => middleSegment(text, 'grapheme'),
];
const NEAR = 64; // characters from the middle in which a cut is looked for first
const FLAG = /[\ud83c\udde6-\uddff]/; // the code units of its two letters
const LONGEST_SEGMENT = 512; // characters; the middle of a longer text is looked at alone

/**
 * The sentences of a text, each with the white space after it; joined, they are the text.
 *
 * @param {string} text
 * @param {function(): Promise<void>} pace As `pacer` gives it.
 * @yields {string}
 */
export async function* sentences(text, pace) {
  let begin = 0;
  for (const match of text.matchAll(END)) {
    await pace();
    if (!isEnd(text, match)) continue;
    const end = match.index + match[0].length;
    yield text.slice(begin, end);
    begin = end;
  }
  if (begin < text.length) yield text.slice(begin);
}

/** Whether a sentence ends at a match of END. */
function isEnd(text, { 0: end, 1: following, index }) {
  if (following === undefined) return true; // the mark was Chinese or Japanese
  if (/^\p{Ll}/u.test(following)) return false;
  if (end[0] !== '.') return end[0] !== '!' || !AFTER_NAME.test(following); // "Yahoo! Inc."
  const near = text.slice(Math.max(0, index - LONGEST_WORD), index).trim().split(/\s+/);
  const [previous, word] = ['', ...near].slice(-2).map((each) => each.replace(BEFORE_WORD, ''));
  if (HOUR.test(word)) return !AFTER_HOUR.test(following);
  if (SHORT.test(word)) {
    const counted = COUNTED.test(previous) || isIn(BEFORE_NUMBER, previous.replace(/\.+$/, ''));
    return /^\p{Nd}/u.test(word) && counted; // as in "Bd. 3. Dort"
  }
  if (isIn(ABBREVIATIONS, word)) return false;
  const isMonth = isIn(MONTHS, word);
  if (isMonth && DAY.test(previous)) return false;
  return !((isMonth || isIn(BEFORE_NUMBER, word)) && NUMBER.test(following));
}

function words(list) {
  return new Set(list.trim().split(/\s+/));
}

function isIn(list, word) {
  return list.has(word) || list.has(word.toLowerCase());
}

/**
 * A sentence in two pieces, cut near its middle after a clause, or else between two words
 * or characters.
 *
 * @param {string} text
 * @returns {string[]} Joined, they are the text; none if it is a single character.
 */
export function halves(text) {
  if (text === '') return [];
  for (const middle of CUTS) {
    const cut = middle(text);
    if (cut > 0) return [text.slice(0, cut), text.slice(cut)];
  }
  return [];
}

/** The match of an empty pattern that is nearest to the middle, looked for outwards from there. */
function middleMatch(text, pattern) {
  const middle = text.length / 2;
  for (let reach = NEAR; ; reach *= 2) {
    pattern.lastIndex = Math.max(0, Math.ceil(middle - reach));
    const near = text.slice(0, middle + reach);
    let nearest = 0;
    for (const { index } of near.matchAll(pattern)) {
      if (Math.abs(index - middle) < Math.abs(nearest - middle)) nearest = index;
    }
    if (nearest > 0 || reach >= middle) return nearest;
  }
}

/** The begin or the end of the word or character in the middle, whichever is nearer to it. */
function middleSegment(text, granularity) {
  const middle = text.length / 2;
  let from = Math.max(0, Math.floor(middle) - LONGEST_SEGMENT);
  while (from > 0 && FLAG.test(text[from - 1])) from -= 1; // where pairs of letters begin
  const near = text.slice(from, middle + LONGEST_SEGMENT);
  const segments = new Intl.Segmenter(undefined, { granularity }).segment(near);
  const { index, segment } = segments.containing(Math.floor(middle) - from);
  const [begin, end] = [from + index, from + index + segment.length];
  const isEndNearer = index === 0 || end - middle < middle - begin;
  if (isEndNearer && index + segment.length < near.length) return end;
  return index === 0 ? 0 : begin;
}
