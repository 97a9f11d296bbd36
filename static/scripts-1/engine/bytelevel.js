// The byte-level vocabulary of a language model, as `transformer/families/whole.py` reads it: bytes of UTF-8 are letters,
// which are merged pair by pair, the earliest pair of the list first. Texts are read as they were typed.

const NO_PIECE = "◌";
const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });
// What is merged for itself: a word with the blank before it, a number, signs, blanks (GPT-2's rule).
const WORD =
  /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;
const MOST_KEPT = 20_000; // words whose pieces are remembered

const visible = (byte) => (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);

// The letter that stands for each byte: itself if it is visible, else one from U+0100 on.
function lettersOfBytes() {
  let hidden = 0;
  return Array.from({ length: 256 }, (_, byte) => {
    if (visible(byte)) return String.fromCodePoint(byte);
    hidden += 1;
    return String.fromCodePoint(0xff + hidden);
  });
}

const LETTERS = lettersOfBytes();
const BYTES = new Map(LETTERS.map((letter, byte) => [letter, byte]));

const pair = (first, second) => `${first} ${second}`;

// A pattern of the added pieces, the longest first; null if there are none.
function anyOf(texts) {
  const escaped = texts.map((text) => text.replace(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`));
  const sorted = escaped.toSorted((a, b) => b.length - a.length);
  return sorted.length ? new RegExp(`(${sorted.join("|")})`, "u") : null;
}

export class ByteLevel {
  // `spelled` has the piece of each id in letters for bytes, `names` the same as people read it.
  constructor({ spelled, names, merges, added, special, digits, composed, whole }) {
    Object.assign(this, { spelled, names, digits, composed, whole, kept: new Map() });
    this.ids = new Map(spelled.map((text, id) => [text, id]).filter(([text]) => text !== null));
    this.ranks = new Map(merges.map(([first, second], rank) => [pair(first, second), rank]));
    this.special = new Set(special);
    this.added = anyOf(added);
    this.addedTexts = new Set(added);
  }

  // The text, the ids and the pieces of what was typed.
  read(typed) {
    const text = typed.toWellFormed();
    const ids = this.encode(text);
    return { text, ids, pieces: ids.map((id) => this.piece(id)) };
  }

  encode(text) {
    const parts = this.added ? text.split(this.added) : [text];
    return parts.flatMap((part) => (this.addedTexts.has(part) ? [this.ids.get(part)] : this.words(part)));
  }

  // The ids of a part without added pieces.
  words(part) {
    const text = this.composed ? part.normalize("NFC") : part;
    const runs = this.digits ? text.split(/(\p{N})/u).filter(Boolean) : [text];
    return runs.flatMap((run) => (run.match(WORD) ?? []).flatMap((word) => this.merged(word)));
  }

  merged(word) {
    const known = this.kept.get(word);
    if (known) return known;
    const letters = Array.from(ENCODER.encode(word), (byte) => LETTERS[byte]);
    const atOnce = this.whole ? this.ids.get(letters.join("")) : undefined;
    const ids = atOnce === undefined ? this.joined(letters).map((part) => this.ids.get(part)) : [atOnce];
    if (this.kept.size > MOST_KEPT) this.kept.clear();
    this.kept.set(word, ids);
    return ids;
  }

  // Letters, joined pair by pair: the pair that stands first in the list, and of equal ones the leftmost.
  joined(letters) {
    const parts = [...letters];
    const rankAt = (i) => this.ranks.get(pair(parts[i], parts[i + 1])) ?? Infinity;
    const ranks = parts.slice(1).map((_, i) => rankAt(i));
    for (;;) {
      const best = ranks.reduce((a, b) => Math.min(a, b), Infinity);
      if (best === Infinity) return parts;
      const at = ranks.indexOf(best);
      parts[at] += parts[at + 1];
      parts.splice(at + 1, 1);
      ranks.splice(at, 1);
      if (at > 0) ranks[at - 1] = rankAt(at - 1);
      if (at < ranks.length) ranks[at] = rankAt(at);
    }
  }

  piece(id) {
    return this.names[id] ?? NO_PIECE;
  }

  // The text of ids, without special ones; a piece that is no letters of bytes is its own text.
  decode(ids) {
    const bytes = ids.filter((id) => !this.special.has(id)).flatMap((id) => this.bytesOf(this.spelled[id] ?? ""));
    return DECODER.decode(Uint8Array.from(bytes));
  }

  bytesOf(spelled) {
    const letters = Array.from(spelled);
    if (letters.every((letter) => BYTES.has(letter))) return letters.map((letter) => BYTES.get(letter));
    return [...ENCODER.encode(spelled)];
  }
}
