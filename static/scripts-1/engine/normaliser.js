// What a text becomes before a sentencepiece model splits it.

import { SPACE, characterAt } from "./cleaning.js";

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

// The distance of a unit of a double array to its children.
const children = (unit) => (unit >>> 10) << ((unit & 0x200) >> 6);

// The trie of a charsmap, a double array over bytes of UTF-8, and the texts that replace what it finds.
class Rules {
  constructor(bytes) {
    const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
    this.units = new Uint32Array(bytes.slice(4, 4 + size).buffer);
    this.texts = bytes.subarray(4 + size);
  }

  text(at) {
    return DECODER.decode(this.texts.subarray(at, this.texts.indexOf(0, at)));
  }

  // The replacement of the longest key with which the text goes on, and the end of the key; undefined if there is none.
  longest(text, start) {
    const { units } = this;
    let [node, value, end] = [children(units[0]), -1, start];
    for (let at = start; at < text.length; ) {
      const char = characterAt(text, at);
      at += char.length;
      for (const byte of ENCODER.encode(char)) {
        node ^= byte;
        if ((units[node] & 0x800000ff) !== byte) return end > start ? [this.text(value), end] : undefined;
        const leaf = units[node] & 0x100;
        node ^= children(units[node]);
        if (leaf) [value, end] = [units[node] & 0x7fffffff, at];
      }
    }
    return end > start ? [this.text(value), end] : undefined;
  }
}

// What a text becomes before it is split: by the rules of a model, user-defined symbols excepted.
export class Normaliser {
  constructor(spec, symbols, suffix = 0) {
    const [, , map, dummy = 1, trims = 1, escapes = 1] = spec;
    Object.assign(this, { symbols, trims, dummy, before: dummy && !suffix, behind: dummy && suffix });
    Object.assign(this, { space: escapes ? SPACE : " ", rules: map?.length ? new Rules(map) : undefined });
  }

  // What the text becomes from a place on, and the end of what becomes so.
  next(text, start) {
    const symbol = this.symbols.find((each) => text.startsWith(each, start));
    if (symbol) return [symbol, start + symbol.length];
    const char = characterAt(text, start);
    return this.rules?.longest(text, start) ?? [char, start + char.length];
  }

  // Where the text begins without spaces before it.
  beginning(text) {
    let at = 0;
    while (this.trims && at < text.length) {
      const [part, end] = this.next(text, at);
      if (part !== " ") break;
      at = end;
    }
    return at;
  }

  // The text, and for each of its places, and for its end, the place in the text as it was.
  normalise(text) {
    let [at, out, spaced] = [this.beginning(text), "", this.trims];
    const origins = [];
    const add = (part) => {
      out += part.replaceAll(" ", this.space);
      while (origins.length < out.length) origins.push(at);
    };
    if (at === text.length) return { out, origins };
    if (this.before) add(" ");
    while (at < text.length) {
      const [part, end] = this.next(text, at);
      const kept = spaced ? part.replace(/^ +/, "") : part;
      add(kept);
      if (kept) spaced = this.trims && kept.endsWith(" ");
      at = end;
    }
    while (this.trims && out.endsWith(this.space)) {
      out = out.slice(0, -1);
      at = origins[out.length];
      origins.length = out.length;
    }
    if (this.behind) add(" ");
    return { out, origins: [...origins, at] };
  }
}
