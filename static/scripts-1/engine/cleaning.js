// Text as typed, made ready for a model: what `transformer/text/typed.py` does, by the tables that Python writes
// (`explorer/linked/live/page.py`).

export const SPACE = "▁";
export const IN_BYTES = /<0x[0-9A-F]{2}>/;
export const UNKNOWN_PIECE = /^▁?<unk:(.+)>$/su;
const LONGEST_UNKNOWN = 100;

// A pattern of one character, by the lengths of what is left out and of what is in, in turns.
export function pattern(lengths) {
  let end = 0;
  let ranges = "";
  for (let i = 0; i < lengths.length; i += 2) {
    const first = end + lengths[i];
    end = first + lengths[i + 1];
    ranges += `\\u{${first.toString(16)}}-\\u{${(end - 1).toString(16)}}`;
  }
  return new RegExp(`[${ranges}]`, "u");
}

export class Cleaner {
  constructor({ spaces, blank, hidden, shaping, joiners, plain }) {
    Object.assign(this, { joiners, plain: new Map(Object.entries(plain)) });
    Object.assign(this, { spaces: pattern(spaces), blank: pattern(blank) });
    Object.assign(this, { hidden: pattern(hidden), shaping: pattern(shaping) });
  }

  words(text) {
    return text.split(this.spaces).filter(Boolean);
  }

  // The text as a model reads it, for each of its words the number of the typed word, and the typographic characters
  // that became plain; `lacks` says for which of them a vocabulary has no piece.
  read(text, lacks) {
    const typed = this.words(text.toWellFormed().normalize("NFC"));
    const plain = [...new Set(typed.join(""))].filter((char) => this.plain.has(char) && lacks(char));
    const become = (char) => (plain.includes(char) ? this.plain.get(char) : char);
    const found = typed.map((word) => this.words(this.visible(Array.from(word, become).join(""))));
    return { text: found.flat().join(" "), words: found.flatMap((parts, i) => parts.map(() => i)), plain };
  }

  // A word in NFC, with spaces for control characters, and without characters that draw nothing.
  visible(word) {
    let [kept, before] = ["", ""];
    for (const char of word) {
      if (this.joiners.includes(char)) {
        kept = kept.normalize("NFC");
        before = Array.from(kept).at(-1) ?? "";
      }
      const shapes = this.joiners.includes(char) && this.shaping.test(before);
      if (!shapes && this.hidden.test(char)) continue;
      before = this.blank.test(char) ? " " : char;
      kept += before;
    }
    return kept.normalize("NFC");
  }
}

export const characterAt = (text, at) => String.fromCodePoint(text.codePointAt(at));

// The name of an unknown piece, with the text for which there is no piece.
function unknownName(piece, own) {
  const mark = piece.startsWith(SPACE) ? SPACE : "";
  const text = Array.from(own || piece.slice(mark.length));
  const more = text.length > LONGEST_UNKNOWN ? "…" : "";
  return `${mark}<unk:${text.slice(0, LONGEST_UNKNOWN).join("")}${more}>`;
}

// The pieces of each typed word; a word that drew nothing has none.
function groupsOf({ text, words }, places) {
  const groups = [];
  const texts = text.split(" ");
  for (const [i, word] of places.entries()) {
    if (i && places[i - 1] === word) groups.at(-1).stop += 1;
    else groups.push({ start: i, stop: i + 1, text: texts.filter((_, at) => words[at] === word).join(" ") });
  }
  return groups;
}

// The pieces of a text that was read, with their words, and with names for what is unknown.
export function cut(reading, found, unknownId) {
  const { text } = reading;
  const [pieces, words, unknown, spelled] = [[], [], new Set(), new Set()];
  let [word, counted] = [0, 0];
  for (const { id, piece, start, stop } of found) {
    const first = start + Number(text[start] === " ");
    for (; counted < first; counted += 1) word += Number(text[counted] === " ");
    words.push(reading.words[Math.min(word, reading.words.length - 1)]);
    if (id === unknownId) {
      const own = text.slice(start, stop).trim();
      pieces.push(unknownName(piece, own));
      for (const char of own || characterAt(text, first)) unknown.add(char);
    } else {
      pieces.push(piece);
      if (!UNKNOWN_PIECE.test(piece) && IN_BYTES.test(piece)) spelled.add(characterAt(text, first));
    }
  }
  const rest = { words, plain: reading.plain, unknown: [...unknown], spelled: [...spelled] };
  return { text, ids: found.map(({ id }) => id), pieces, ...rest, groups: groupsOf(reading, words) };
}
