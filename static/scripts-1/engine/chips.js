// Pieces as they are written for people, and as the strips of the linked view want them: what
// `explorer/figures/base/labels.py` and `explorer/linked/view/strips.py` do.
//
//   const writing = new Writing(tables);            // of `explorer/linked/live/page.py`
//   writing.chips(["▁A", "▁cat", "s", "</s>"])      // [{ text: "A", first: 0, last: 0, gap: true, … }, …]
//   writing.name("▁cat")                            // "cat", as titles say it

import { IN_BYTES, SPACE, UNKNOWN_PIECE, pattern } from "./cleaning.js";

const [VISIBLE_SPACE, JOINED, LONGEST] = ["◦", "‿", 24];
const SMALL = "₀₁₂₃₄₅₆₇₈₉";
const BYTE = /<0x([0-9A-F]{2})>/g;
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}]/gu;
const AROUND = /^\p{White_Space}+|\p{White_Space}+$/gu; // `trim` takes a mark of byte order along
const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

const unknownText = (piece) => UNKNOWN_PIECE.exec(piece)?.[1];
const inBytes = (piece) => unknownText(piece) === undefined && IN_BYTES.test(piece);
const bare = (piece) => (piece.startsWith(SPACE) ? piece.slice(1) : piece);

// What a piece spells, with its `▁`.
function bytesOf(piece) {
  const unknown = unknownText(piece);
  if (unknown !== undefined) return [...ENCODER.encode((piece.startsWith(SPACE) ? SPACE : "") + unknown)];
  return piece.split(BYTE).flatMap((part, i) => (i % 2 ? [Number.parseInt(part, 16)] : [...ENCODER.encode(part)]));
}

// True if bytes end before their last character does; its lead byte says how many it has.
function isCut(bytes) {
  const back = 1 + bytes.slice(-3).toReversed().findIndex((byte) => byte < 0x80 || byte >= 0xc0);
  const lead = back ? bytes.at(-back) : 0;
  return lead >= 0xc0 && 2 + (lead >= 0xe0) + (lead >= 0xf0) > back;
}

// First and last place of the pieces of each character, and what they spell; only bytes are joined.
function characters(pieces) {
  const found = [];
  for (let first = 0, last = 0; first < pieces.length; first = last + 1) {
    last = first;
    let bytes = inBytes(pieces[first]) ? bytesOf(pieces[first]) : [];
    while (last + 1 < pieces.length && isCut(bytes)) {
      const next = bytesOf(pieces[last + 1]);
      if (next[0] < 0x80 || next[0] >= 0xc0) break;
      [bytes, last] = [[...bytes, ...next], last + 1];
    }
    const spelled = DECODER.decode(Uint8Array.from(bytes)).replaceAll(SPACE, " ");
    const text = spelled.replaceAll(AROUND, "") || VISIBLE_SPACE;
    found.push({ first, last, text: last > first ? text : pieces[first] });
  }
  return found;
}

function shorten(text, most = LONGEST) {
  const letters = Array.from(text);
  return letters.length > most ? `${letters.slice(0, most).join("")}…` : text;
}

const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "#": "&#35;" };

// A text for a figure, as Python escapes it for plotly.js.
export const escaped = (text) => text.replace(/[&<>#]/g, (sign) => ESCAPES[sign]);

const RIGHT = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}]/u;

// `rtl` if most letters run from right to left.
export function direction(pieces) {
  const letters = Array.from(pieces.join("")).filter((char) => /\p{L}/u.test(char));
  return letters.filter((char) => RIGHT.test(char)).length > letters.length / 2 ? "rtl" : "ltr";
}

const numberOf = (char) => `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

// Signs for characters that break a line or move along it, by their codes.
const BREAKS = { 9: "→", 10: "¶", 13: "↙" };

// A character for a byte, a sign, or its code.
const codeOf = (_, digits) => {
  const code = Number.parseInt(digits, 16);
  if (code in BREAKS) return BREAKS[code];
  return code > 0x20 && code < 0x7f ? String.fromCodePoint(code) : ` 0x${digits} `;
};

// A number as an index of a name.
const small = (index) => Array.from(`${index ?? ""}`, (digit) => SMALL[digit]).join("");

export class Writing {
  constructor({ digits, spaces, special }) {
    Object.assign(this, { digits: pattern(digits), spaces: pattern(spaces) });
    this.special = new RegExp(`^(${special})$`, "u");
  }

  display(piece) {
    const unknown = unknownText(piece);
    if (this.special.test(piece)) return piece;
    if (unknown !== undefined) return `<unk> ${unknown}`;
    const text = bare(piece);
    if (inBytes(piece)) return text.replace(BYTE, codeOf).split(/\s+/u).filter(Boolean).join(" ");
    if (!text) return piece ? VISIBLE_SPACE : "◌";
    if (Array.from(text).every((char) => this.spaces.test(char))) return VISIBLE_SPACE.repeat(text.length);
    return text.replaceAll(SPACE, VISIBLE_SPACE).replace(HIDDEN, numberOf);
  }

  // Marked if it begins without a space, with a digit or with a letter of two cases.
  marked(piece) {
    const [first = ""] = piece;
    const joined = this.digits.test(first) || first.toLowerCase() !== first.toUpperCase();
    return (joined && !this.special.test(piece) ? JOINED : "") + this.display(piece);
  }

  name(piece) {
    return shorten(this.marked(piece));
  }

  // The texts of a sequence, marked if they are not whole words, and the place of each among equal ones, from 1.
  numbered(texts) {
    const spaced = texts.some((text) => text.startsWith(SPACE));
    const names = texts.map((text, i) => (spaced && i ? this.marked(text) : this.display(text)));
    const count = (name, end) => names.slice(0, end).filter((each) => each === name).length;
    return names.map((name, i) => ({ name, index: count(name) > 1 ? count(name, i + 1) : null }));
  }

  // Names of tokens with their index; cut after `most` letters.
  names(tokens, most = Infinity) {
    return this.numbered(tokens).map(({ name, index }) => shorten(name, most) + small(index));
  }

  chips(pieces) {
    const found = characters(pieces);
    return this.numbered(found.map(({ text }) => text)).map(({ name, index }, i) => {
      const { first, last } = found[i];
      const special = this.special.test(pieces[first]);
      return {
        text: shorten(name),
        first,
        last,
        gap: special || pieces[first].startsWith(SPACE),
        special: special || unknownText(pieces[first]) !== undefined,
        index,
        gloss: null,
      };
    });
  }
}
