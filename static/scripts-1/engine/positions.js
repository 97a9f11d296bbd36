// Positional encodings: a table that is added to the embeddings, a rotation of queries and keys, or numbers that are
// added to the scores. One object for each stack; what an encoding does not do is left out.

import { floatsOf } from "./tensors.js";

const [BASE, REACH, BUCKETS, FARTHEST] = [10000, 16, 32, 128];

const clamp = (value, reach) => Math.min(Math.max(value, -reach), reach);

// PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i + 1) = cos(…) (Vaswani et al. 2017, section 3.5). "halves" has
// all sines first; "inclusive" too, with another last wavelength.
function sinusoidal({ d_model: d, sine_layout: layout, first_position: start }) {
  const half = Math.ceil(d / 2);
  const period = layout === "inclusive" ? Math.max(1, d - 2) : d;
  const split = layout !== "interleaved";
  const added = (position) =>
    Float32Array.from({ length: d }, (_, k) => {
      const [i, cosine] = split ? [k % half, k >= half] : [k >> 1, k % 2 === 1];
      const angle = (position + (start ?? 0)) * Math.exp((-Math.log(BASE) * 2 * i) / period);
      return cosine ? Math.cos(angle) : Math.sin(angle);
    });
  return { added };
}

// One learned vector for each position.
function learned({ d_model: d }, tensors, side) {
  const table = floatsOf(tensors, `${side}.positions.table`);
  return { added: (position) => table.subarray(position * d, (position + 1) * d) };
}

// Radians by which a pair of dimensions turns from one position to the next, after those of the first training were
// scaled for longer texts (`Rotation` in transformer/config.py).
function scaled(angle, config) {
  const { rotary_scaling: scaling, rotary_factor: factor, rotary_low: low, rotary_high: high } = config;
  if (scaling === "linear") return angle / factor;
  if (scaling !== "llama3") return angle;
  const waves = (config.rotary_trained_length * angle) / (2 * Math.PI);
  const kept = Math.min(Math.max((waves - low) / (high - low), 0), 1);
  return kept * angle + ((1 - kept) * angle) / factor;
}

// Turns each pair (2i, 2i + 1) of a head, or of its first part, by pos · base^(−2i/width) (Su et al. 2021, equation 15).
function rotary(config, _tensors, _side, wide) {
  const width = config.rotary_width ?? wide;
  const base = config.rotary_base ?? BASE;
  const angles = Array.from({ length: width / 2 }, (_, i) => scaled(base ** ((-2 * i) / width), config));
  const rotate = (x, position, start) => {
    for (let i = 0; i < width; i += 2) {
      const angle = position * angles[i / 2];
      const [sine, cosine, even, odd] = [Math.sin(angle), Math.cos(angle), x[start + i], x[start + i + 1]];
      x[start + i] = even * cosine - odd * sine;
      x[start + i + 1] = even * sine + odd * cosine;
    }
  };
  return { rotate };
}

// q · a / √d_k with a learned vector a for each clipped distance (Shaw et al. 2018, equations 2 and 4).
function shaw({ n_heads: heads }, tensors, side, wide) {
  const vectors = floatsOf(tensors, `${side}.positions.vectors`);
  const bias = (layer, head, distance, query, start) => {
    const at = ((layer * heads + head) * (2 * REACH + 1) + clamp(distance, REACH) + REACH) * wide;
    let sum = 0;
    for (let i = 0; i < wide; i += 1) sum += query[start + i] * vectors[at + i];
    return sum / Math.sqrt(wide);
  };
  return { bias };
}

function bucket(distance, buckets) {
  const exact = buckets / 2;
  if (distance < exact) return distance;
  const far = (Math.log(distance / exact) / Math.log(FARTHEST / exact)) * (buckets - exact);
  return Math.min(exact + Math.floor(far + 1e-9), buckets - 1);
}

// A learned number for each head and bucket of distances (Raffel et al. 2020, section 2.1).
function t5(_config, tensors, side) {
  const weight = floatsOf(tensors, `${side}.positions.weight`);
  const place = (distance) =>
    side === "decoder"
      ? bucket(Math.max(-distance, 0), BUCKETS)
      : bucket(Math.abs(distance), BUCKETS / 2) + (distance > 0 ? BUCKETS / 2 : 0);
  return { bias: (_layer, head, distance) => weight[head * BUCKETS + place(clamp(distance, FARTHEST))] };
}

// A fixed slope for each head times the distance (Press et al. 2022, section 3).
function alibi({ n_heads: heads }) {
  const below = 2 ** Math.floor(Math.log2(heads));
  const slope = (head) => (head < below ? (-8 / below) * (head + 1) : (-4 / below) * (2 * (head - below) + 1));
  const slopes = Float32Array.from({ length: heads }, (_, head) => 2 ** slope(head));
  return { bias: (_layer, head, distance) => -slopes[head] * Math.abs(distance) };
}

const ENCODINGS = { none: () => ({}), sinusoidal, learned, rotary, shaw, t5, alibi };

// The encoding of a stack; `wide` is the width of a head.
export const positionsOf = (config, tensors, side, wide) =>
  ENCODINGS[config.positions](config, tensors, side, wide);
