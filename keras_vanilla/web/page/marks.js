/** Inline tags of a text, and parts of it that are not translated. */

const TAG = /<(?:!--[^]*?--|\/?[A-Za-z](?:[^<>"']|"[^"]*"|'[^']*')*)>/u;
const W = '[\\p{L}\\p{M}\\p{N}_]'; // what words are made of
const KEPT = [
  '`(?:[^`<]|<(?![A-Za-z/!]))+`',
  '&(?:[A-Za-z][A-Za-z0-9]*|#[0-9]+|#[xX][0-9A-Fa-f]+);',
  `(?:https?://|(?<!${W})www\\.)[^\\s<>"\`]*(?:${W}|[/#&=%~+\\-])`,
  `(?<!${W}|[.+\\-])(?:${W}|[.+\\-])+@(?:${W}|-)+(?:\\.(?:${W}|-)+)+`,
].join('|');
const MARKS = new RegExp(`(?<tag>${TAG.source})|(?:${KEPT})`, 'gu');
// Between them: 3.14 or 2026-11-23; A4, x86-64 or v1.2, if there is a digit. What is neither
// is read over, so that nothing is read twice.
const NUMBERS = new RegExp(
  `(?<number>(?<!${W})\\p{Nd}+(?:[.,:/\\-]\\p{Nd}+)*(?![.,:/\\-]?${W}))` +
    `|(?<name>(?<!${W})[\\p{L}\\p{Nl}\\p{No}_]${W}*(?:[.:/\\-]${W}+)*)` +
    '|\\p{Nd}+(?:[.,:/\\-]\\p{Nd}+)*',
  'gu',
);
const VOID = new Set(
  'area base br col embed hr img input link meta source track wbr'.split(' '),
);
const BREAKS = ['br', 'hr', 'img']; // where they separate words, so does a space

/**
 * A tag, an element or a kept part, and the characters of the text it marks.
 *
 * `begin` and `end` are places between the words of the translation, given later.
 */
class Mark {
  closing = '';
  children = [];
  begin = 0;
  end = 0;

  constructor(opening, place, kept) {
    this.opening = opening;
    this.sourceBegin = place;
    this.sourceEnd = place;
    this.kept = kept;
  }

  get hasText() {
    return this.kept || this.children.some((child) => child.hasText);
  }
}

/**
 * The text without its tags, and its marks as a tree: `{ plain, marks }`.
 *
 * @param {string} text
 * @param {function(): Promise<void>} pace As `pacer` gives it.
 */
export async function readMarks(text, pace) {
  const opened = [new Mark('', 0, false)];
  let plain = '';
  let last = ''; // character of it: to look for it there would take long each time
  const add = (part) => {
    plain += part;
    last = part.at(-1) ?? last;
  };
  let end = 0;
  for (const { found, index, isTag, isMark } of marksOf(text)) {
    await pace();
    if (!isMark) continue;
    add(text.slice(end, index));
    end = index + found.length;
    const mark = new Mark(found, plain.length, !isTag);
    if (mark.kept) {
      add(found);
      mark.sourceEnd = plain.length;
      opened.at(-1).children.push(mark);
      continue;
    }
    const name = nameOf(found);
    if (BREAKS.includes(name) && /\S/.test(last) && /\S/.test(text.charAt(end))) add(' ');
    addTag(opened, mark, name);
  }
  endUnmatched(opened, 1);
  return { plain: plain + text.slice(end), marks: opened[0].children };
}

/** The tags and kept parts of a text, and the words between them, which are no marks. */
function* marksOf(text) {
  let end = 0;
  for (const { 0: found, index, groups } of text.matchAll(MARKS)) {
    yield* keptBetween(text, end, index);
    yield { found, index, isTag: Boolean(groups.tag), isMark: true };
    end = index + found.length;
  }
  yield* keptBetween(text, end, text.length);
}

function* keptBetween(text, begin, end) {
  for (const { 0: found, index, groups } of text.slice(begin, end).matchAll(NUMBERS)) {
    const isMark = Boolean(groups.number) || /\p{Nd}/u.test(groups.name ?? '');
    yield { found, index: begin + index, isTag: false, isMark };
  }
}

function nameOf(tag) {
  return /^<\/?([A-Za-z][^\s/>]*)/u.exec(tag)?.[1].toLowerCase() ?? '';
}

function addTag(opened, mark, name) {
  const tag = mark.opening;
  const closes = tag.startsWith('</');
  if (closes) {
    const depth = opened.findLastIndex(({ opening }) => opening && nameOf(opening) === name);
    if (depth > 0) {
      endUnmatched(opened, depth + 1);
      const element = opened.pop();
      element.closing = tag;
      element.sourceEnd = mark.sourceBegin;
      return;
    }
  }
  opened.at(-1).children.push(mark);
  const isVoid = tag.startsWith('<!') || tag.endsWith('/>') || VOID.has(name);
  if (!closes && !isVoid) opened.push(mark);
}

/** Tags that nothing closes are void: what follows them is their parent's. */
function endUnmatched(opened, depth) {
  while (opened.length > depth) {
    const unmatched = opened.pop();
    opened.at(-1).children.push(...unmatched.children);
    unmatched.children = [];
  }
}
