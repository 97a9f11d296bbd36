// The run in the file: texts of every head, and their cells as bytes (`explorer/linked/living/packed.py` writes both).

import { bytesOf } from "../linked_view/values.js";

// Reads the run: four bytes with the length of its JSON, the JSON, and the cells of all kinds.
export async function unpacked(text) {
  const open = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(open).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const run = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  return new Run(run, bytes.subarray(4 + length));
}

// Bytes in the form in which Python writes an array for plotly.js.
export function written(bytes, dtype, shape) {
  const parts = [];
  for (let at = 0; at < bytes.length; at += 4096) parts.push(String.fromCharCode(...bytes.subarray(at, at + 4096)));
  return { dtype, bdata: btoa(parts.join("")), shape: shape.join(", ") };
}

// Thousandths of the weight nearest to a colour level; the second byte of a cell, if it has one, says how far the
// weight is from it. Weights that are not from 0 to 1 are in the file as they are.
const near = (level) => Math.floor((1000 * (Math.max(level, 1) - 1) + 127) / 254);

const weight = ({ levels, beside, numbers, raw }, i) =>
  raw ? numbers[i] : (near(levels[i]) + (beside ? beside[i] - 128 : 0)) / 1000;

// A feed whose figure has its cells: colour levels (rows × columns), and numbers of every cell.
export function filled(feed, levels, bytes, shape) {
  const figure = JSON.parse(feed.figure);
  figure.data[0].z = written(levels, "u1", shape.slice(0, 2));
  figure.data[0].customdata = written(bytes, "f4", shape);
  return { ...feed, figure: JSON.stringify(figure) };
}

// Bytes as numbers of four bytes each, wherever they start.
const floats = (bytes) => new Float32Array(bytes.slice().buffer);

function takeMeasure(measure, [rows, columns], take) {
  const count = (measure.heads?.length ?? 0) * rows * columns;
  Object.assign(measure, { levels: take(count), beside: take(count), numbers: floats(take(4 * count)) });
}

class Run {
  constructor(run, cells) {
    Object.assign(this, run);
    let at = 0;
    const take = (count) => cells.subarray(at, (at += count));
    for (const kind of Object.values(this.kinds)) {
      const heads = kind.size[0] * kind.size[1];
      if (kind.whole) kind.pooled = take(heads * kind.tile[0] * kind.tile[1]);
      const count = (kind.whole?.length ?? heads) * kind.shape[0] * kind.shape[1];
      kind.levels = take(count);
      if (kind.raw) kind.numbers = floats(take(4 * count));
      if (kind.fine) kind.beside = take(count);
      if (kind.scored) kind.scores = [take(count), take(count)];
      for (const measure of Object.values(kind.measures ?? {})) takeMeasure(measure, kind.shape, take);
    }
  }

  // The places of a head's cells among those of its kind.
  part({ size, shape, whole }, [layer, head]) {
    const count = shape[0] * shape[1];
    const at = whole ? whole.findIndex((each) => `${each}` === `${[layer, head]}`) : layer * size[1] + head;
    return [at * count, (at + 1) * count];
  }

  // The tile of a head of a long run, which is pooled already.
  tile({ size, tile: [high, wide], pooled }, [layer, head]) {
    const at = layer * size[1] + head;
    return { cells: pooled.subarray(at * high * wide, (at + 1) * high * wide), high, wide };
  }

  levels(name, head) {
    const kind = this.kinds[name];
    return kind.levels.subarray(...this.part(kind, head));
  }

  // (queries × keys) weights of a head.
  weights(name, head) {
    const kind = this.kinds[name];
    const [start, stop] = this.part(kind, head);
    return Array.from({ length: stop - start }, (_, i) => weight(kind, start + i));
  }

  // Decimals with which the weights of a kind are written.
  decimals(name) {
    return this.kinds[name].fine || this.kinds[name].raw ? 3 : 2;
  }

  // The weights of a head, and its scores before the mask to two if they are in the file.
  numbers(kind, head) {
    const [start, stop] = this.part(kind, head);
    const channels = kind.scored ? 2 : 1;
    const found = new Float32Array((stop - start) * channels);
    for (let i = start; i < stop; i += 1) {
      const at = (i - start) * channels;
      found[at] = weight(kind, i);
      if (kind.scored) found[at + 1] = (kind.scores[0][i] + 256 * kind.scores[1][i] - 32768) / 100;
    }
    return { bytes: new Uint8Array(found.buffer), channels };
  }

  // The feed of a head's map, as Python sends it to the app.
  map(name, head, measure = "weight") {
    const kind = this.kinds[name];
    const measured = this.measured(name, head, kind.measures?.[measure]);
    if (measured) return measured;
    const feed = { ...kind.shared, ...kind.own[head[0]][head[1]], name, view: this.spec.view };
    const { bytes, channels } = this.numbers(kind, head);
    return filled(feed, this.levels(name, head), bytes, [...kind.shape, channels]);
  }

  // The same with a measure in the place of the weight; undefined if this head was not measured.
  measured(name, head, measure) {
    const at = measure?.heads?.findIndex((each) => `${each}` === `${head}`) ?? -1;
    if (at < 0) return undefined;
    const { shared, shape } = this.kinds[name];
    const [start, count] = [at * shape[0] * shape[1], shape[0] * shape[1]];
    const both = Float32Array.from({ length: 2 * count }, (_, i) => {
      const cell = start + Math.floor(i / 2);
      return i % 2 ? measure.numbers[cell] : weight(measure, cell);
    });
    const feed = { ...shared, ...measure.own[at], name, view: this.spec.view };
    return filled(feed, measure.levels.slice(start, start + count), new Uint8Array(both.buffer), [...shape, 2]);
  }

  // The strips; the source token follows the head of cross-attention that is shown.
  strips({ cross }) {
    const followed = this.kinds.cross?.follow;
    const follow = followed ? followed[cross[0]][cross[1]] : [];
    return { ...this.shown.strips, follow, name: "strips", view: this.spec.view };
  }
}
