// Splits a text into pieces, by the rules of sentencepiece and from its file, and joins them again.
//
//   const tokenizer = new Tokenizer(bytes, tables); // of tokenizer.model; tables of `explorer/linked/live/page.py`
//   tokenizer.size, tokenizer.special               // 10000, { pad: 0, bos: 1, eos: 2, unk: 3 }; size for what is not
//   tokenizer.read(" A  ‘cat’ Ж")                   // a text as typed:
//     // { text: "A 'cat' Ж",                       //   as the model reads it
//     //   ids: [356, 264, 409, …],                 //   without `</s>`
//     //   pieces: ["▁A", "▁", "'", …],             //   what has no piece is `<unk:text>`
//     //   words: [0, 1, 1, …],                     //   for each piece, the typed word that it stands in, from 0
//     //   plain: ["‘", "’"],                       //   typographic characters that became plain, each once
//     //   unknown: [], spelled: ["Ж"],             //   characters read as unknown, spelled in bytes, each once
//     //   groups: [{ start: 0, stop: 1, text: "A" }, …] } // the pieces of each typed word
//   tokenizer.encode("A cat")                       // ids of a text that has been read: [356, 2037]
//   tokenizer.decode(ids)                           // the text of ids; `<pad>`, `<s>` and `</s>` are left out
//   tokenizer.piece(356)                            // "▁A"; "◌" past the last one
//
// An Error says in one sentence why a file cannot be used.

import { Cleaner, SPACE, characterAt, cut } from "./cleaning.js";
import { Normaliser } from "./normaliser.js";

const [NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE] = [1, 2, 3, 4, 5, 6];
const [UNIGRAM, BPE] = [1, 2];
const UNKNOWN_PENALTY = 10;
const LEAST_BEST = 2 ** -126; // sentencepiece takes no best score below it
const [NO_PIECE, DAMAGED_BYTE] = ["◌", "\ufffd"];
const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });
const STRICT = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true });
const SIZES = { 1: 8, 5: 4 }; // of numbers in bytes, by their kind in a message
const DAMAGED = "The tokenizer file is damaged or is not a sentencepiece model.";

// Calls `take` with number and value of each field of a protobuf message: numbers, and bytes for all that has a length.
function fields(bytes, take) {
  let at = 0;
  const varint = () => {
    for (let value = 0, unit = 1; at < bytes.length; unit *= 128) {
      const byte = bytes[at];
      at += 1;
      value += (byte & 127) * unit;
      if (byte < 128) return value;
    }
    return NaN;
  };
  while (at < bytes.length) {
    const key = varint();
    const number = Math.floor(key / 8);
    if (key % 8 === 0) take(number, varint());
    else {
      const size = key % 8 === 2 ? varint() : SIZES[key % 8];
      if (!(at + size <= bytes.length)) throw new Error(DAMAGED);
      at += size;
      take(number, bytes.subarray(at - size, at));
    }
  }
}

// The last value of each field.
function message(bytes) {
  const values = [];
  fields(bytes, (number, value) => (values[number] = value));
  return values;
}

const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);

// The characters that bytes spell; a byte that is no part of one is damaged.
function charactersOf(bytes) {
  let text = "";
  for (let at = 0, size = 1; at < bytes.length; at += size) {
    const lead = bytes[at];
    size = 1 + (lead >= 0xc0) + (lead >= 0xe0) + (lead >= 0xf0);
    const char = DECODER.decode(Uint8Array.from(bytes.slice(at, at + size)));
    const whole = ENCODER.encode(char).every((byte, i) => byte === bytes[at + i]);
    if (!whole) size = 1;
    text += whole ? char : DAMAGED_BYTE;
  }
  return text;
}

export class Tokenizer {
  constructor(bytes, tables) {
    this.cleaner = new Cleaner(tables);
    try {
      this.open(bytes);
    } catch (error) {
      throw error instanceof RangeError || error instanceof TypeError ? new Error(DAMAGED, { cause: error }) : error;
    }
  }

  open(bytes) {
    Object.assign(this, { names: [], scores: [], types: [], ids: new Map(), reserved: new Map(), longest: 0 });
    const specs = [[], [], [], [], [], []];
    fields(bytes, (number, value) => {
      if (number === 1) this.add(value);
      else if (number in specs) specs[number] = message(value);
    });
    const [, , trainer, normaliser, , denormaliser] = specs;
    const { 3: model = UNIGRAM, 24: suffix, 35: fallback, 44: unknownText } = trainer;
    if (model > BPE) {
      throw new Error("The tokenizer splits a text into words or characters, which this page cannot do.");
    }
    this.special = this.specialIds(trainer);
    this.symbols = this.names.filter((_, id) => this.types[id] === USER_DEFINED).sort((a, b) => b.length - a.length);
    this.normaliser = new Normaliser(normaliser, this.symbols, suffix);
    this.denormaliser = denormaliser[2]?.length ? new Normaliser(denormaliser, []) : undefined;
    this.unknownText = unknownText ? DECODER.decode(unknownText) : " ⁇ ";
    this.fallback = fallback;
    this.split = model === BPE ? this.merged : this.likeliest;
    if (model === UNIGRAM) this.weigh();
  }

  // The ids of pieces that no text contains; the number of pieces for one that does not exist.
  specialIds({ 46: bos, 47: eos, 48: pad }) {
    const control = (name, usual) => {
      const id = this.reserved.get(name?.length ? DECODER.decode(name) : usual);
      return this.types[id] === CONTROL ? id : this.size;
    };
    const found = { pad: control(pad, "<pad>"), bos: control(bos, "<s>"), eos: control(eos, "</s>") };
    const unk = this.types.indexOf(UNKNOWN);
    if (!this.size) throw new Error(DAMAGED);
    if (unk < 0 || found.eos === this.size) {
      throw new Error("The tokenizer has no </s> or no <unk>, which this page needs.");
    }
    return { ...found, unk };
  }

  add(bytes) {
    const [, text, score, type = NORMAL] = message(bytes);
    const name = STRICT.decode(text);
    const matched = type === NORMAL || type === USER_DEFINED || type === UNUSED;
    (matched ? this.ids : this.reserved).set(name, this.size);
    if (matched) this.longest = Math.max(this.longest, name.length);
    this.names.push(name);
    this.scores.push(score ? viewOf(score).getFloat32(0, true) : 0);
    this.types.push(type);
  }

  // The score of an unknown character; user-defined symbols get one that always wins.
  weigh() {
    const normal = this.scores.filter((_, id) => this.types[id] === NORMAL);
    const best = normal.reduce((a, b) => Math.max(a, b), LEAST_BEST);
    this.unknownScore = Math.fround(normal.reduce((a, b) => Math.min(a, b), Infinity) - UNKNOWN_PENALTY);
    for (const symbol of this.symbols) {
      this.scores[this.ids.get(symbol)] = Math.fround(ENCODER.encode(symbol).length * best) - 0.1;
    }
  }

  get size() {
    return this.names.length;
  }

  // The parts of a text, with their ids, that a unigram model finds likeliest. Sums have 32 bits: so are ties found.
  likeliest(text) {
    const [best, starts, ids] = [new Float32Array(text.length + 1), new Int32Array(text.length + 1).fill(-1), []];
    const offer = (start, end, id, score) => {
      if (starts[end] >= 0 && score <= best[end]) return;
      [best[end], starts[end], ids[end]] = [score, start, id];
    };
    for (let start = 0, next = 0; start < text.length; start = next) {
      next = start + characterAt(text, start).length;
      let alone = false;
      const last = Math.min(start + this.longest, text.length);
      for (let end = next; end <= last; end += 1) {
        const id = this.ids.get(text.slice(start, end));
        if (id === undefined || this.types[id] === UNUSED) continue;
        offer(start, end, id, Math.fround(best[start] + this.scores[id]));
        alone ||= end === next;
      }
      if (!alone) offer(start, next, this.special.unk, Math.fround(best[start] + this.unknownScore));
    }
    const parts = [];
    for (let end = text.length; end > 0; end = starts[end]) parts.push([text.slice(starts[end], end), ids[end]]);
    return parts.toReversed();
  }

  // The parts of a text, with their ids, when a BPE model has merged its pairs, the best one first. Pieces that are not
  // used are taken apart again.
  merged(text) {
    const [parts, fixed, halves] = [[], [], new Map()];
    for (let at = 0; at < text.length; at += parts.at(-1).length) {
      const symbol = this.symbols.find((each) => text.startsWith(each, at));
      fixed.push(Boolean(symbol));
      parts.push(symbol ?? characterAt(text, at));
    }
    const paired = (left) => {
      if (left < 0 || left + 1 >= parts.length || fixed[left] || fixed[left + 1]) return -Infinity;
      const id = this.ids.get(parts[left] + parts[left + 1]);
      if (this.types[id] === UNUSED) halves.set(this.names[id], [parts[left], parts[left + 1]]);
      return this.scores[id] ?? -Infinity;
    };
    const scores = parts.map((_, left) => paired(left));
    for (;;) {
      const best = scores.reduce((a, b) => Math.max(a, b), -Infinity);
      if (best === -Infinity) break;
      const left = scores.indexOf(best);
      parts[left] += parts[left + 1];
      for (const each of [parts, fixed, scores]) each.splice(left + 1, 1);
      if (left) scores[left - 1] = paired(left - 1);
      scores[left] = paired(left);
    }
    const apart = (part) => {
      const id = this.ids.get(part);
      if (this.types[id] === UNUSED && halves.has(part)) return halves.get(part).flatMap(apart);
      return [[part, this.types[id] === UNUSED ? this.special.unk : (id ?? this.special.unk)]];
    };
    return parts.flatMap(apart);
  }

  // The pieces of a text that has been read, and where they begin and end in it.
  found(text) {
    const { out, origins } = this.normaliser.normalise(text);
    const found = [];
    let at = 0;
    for (const [piece, id] of this.split(out)) {
      const [start, stop] = [origins[at], origins[at + piece.length]];
      at += piece.length;
      if (id === this.special.unk && this.fallback) {
        for (const byte of ENCODER.encode(piece)) {
          const name = `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
          found.push({ id: this.reserved.get(name), piece: name, start, stop });
        }
      } else if (id === this.special.unk && found.at(-1)?.id === id) {
        found.at(-1).piece += piece;
        found.at(-1).stop = stop;
      } else found.push({ id, piece, start, stop });
    }
    return found;
  }

  lacks(character) {
    return this.encode(character).some((id) => id === this.special.unk || this.types[id] === BYTE);
  }

  read(typed) {
    const reading = this.cleaner.read(typed, (character) => this.lacks(character));
    return cut(reading, this.found(reading.text), this.special.unk);
  }

  encode(text) {
    return this.found(text).map(({ id }) => id);
  }

  piece(id) {
    return this.names[id] ?? NO_PIECE;
  }

  // The space before the first word was put there, and goes.
  decode(ids) {
    const { pad, bos, eos } = this.special;
    const { trims, dummy } = this.normaliser;
    const bytes = [];
    let [text, strips] = ["", trims || dummy];
    for (const id of ids.filter((each) => each !== pad && each !== bos && each !== eos)) {
      if (this.types[id] === BYTE) {
        bytes.push(Number(this.names[id].slice(1, -1)));
        continue;
      }
      text += charactersOf(bytes.splice(0));
      strips &&= !text;
      const part = this.surface(id);
      text += (strips ? part.replace(/^▁/, "") : part).replaceAll(SPACE, " ");
      strips &&= trims || !part.startsWith(SPACE);
    }
    text += charactersOf(bytes);
    return this.denormaliser?.normalise(text).out ?? text;
  }

  surface(id) {
    if (this.types[id] === CONTROL) return "";
    return this.types[id] === UNKNOWN ? this.unknownText : this.piece(id);
  }
}
