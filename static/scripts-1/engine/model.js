// The Transformers of the Python package (Vaswani et al. 2017, section 3), for one sentence: greedy or along a given
// output, with every head recorded. Ids of a source end with the end token; a language model has no source, but a
// prompt with which its text begins.

import { Matrix } from "./matrix.js";
import { positionsOf } from "./positions.js";
import { floatsOf } from "./tensors.js";

const [BEST, SLICE] = [10, 12]; // candidates that a step keeps; milliseconds between two looks at what else is asked

const SERIES = [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592];

// The error function (Abramowitz and Stegun, 7.1.26; to 1.5e-7).
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const series = SERIES.reduce((all, each) => all * t + each, 0);
  return Math.sign(x) * (1 - series * t * Math.exp(-x * x));
}

const ACTIVATIONS = {
  relu: (x) => Math.max(x, 0),
  gelu: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
  gelu_tanh: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  silu: (x) => x / (1 + Math.exp(-x)),
};

// (vectors × width) LayerNorm or RMSNorm of each vector, with what a file has of gain and shift.
function norm({ norm_by: by, norm_epsilon: epsilon = 1e-5 }, tensors, name) {
  const [gain, shift] = [floatsOf(tensors, `${name}.weight`), floatsOf(tensors, `${name}.bias`)];
  if (!gain) return (x) => x;
  const wide = gain.length;
  return (x) => {
    const y = new Float32Array(x.length);
    for (let at = 0; at < x.length; at += wide) {
      let [mean, square] = [0, 0];
      if (by !== "rms") for (let i = 0; i < wide; i += 1) mean += x[at + i] / wide;
      for (let i = 0; i < wide; i += 1) square += (x[at + i] - mean) ** 2 / wide;
      const scale = 1 / Math.sqrt(square + epsilon);
      for (let i = 0; i < wide; i += 1) y[at + i] = (x[at + i] - mean) * scale * gain[i] + (shift ? shift[i] : 0);
    }
    return y;
  };
}

function sum(x, y) {
  const found = new Float32Array(x.length);
  for (let i = 0; i < x.length; i += 1) found[i] = x[i] + y[i];
  return found;
}

// Keys and values that an attention reads; they grow with the steps. `weights` has a row for each query that looked.
class Seen {
  constructor(wide) {
    Object.assign(this, { wide, count: 0, keys: new Float32Array(0), values: new Float32Array(0) });
    Object.assign(this, { queries: [], weights: [] });
  }

  add(keys, values) {
    const need = this.count * this.wide + keys.length;
    if (need > this.keys.length) {
      for (const name of ["keys", "values"]) {
        const more = new Float32Array(2 * need);
        more.set(this[name]);
        this[name] = more;
      }
    }
    this.keys.set(keys, this.count * this.wide);
    this.values.set(values, this.count * this.wide);
    this.count += keys.length / this.wide;
  }
}

class Attention {
  constructor(model, name, kind, layer, positions) {
    Object.assign(this, { kind, layer, positions, heads: model.config.n_heads, wide: model.wide });
    Object.assign(this, { causal: kind === "decoder", divisor: model.divisor, keyHeads: model.keyHeads });
    this.group = this.heads / this.keyHeads; // heads of queries that read the same keys and values
    for (const part of ["q", "k", "v", "out"]) this[part] = model.matrix(`${name}.${part}_proj`);
    for (const part of ["q", "k"]) this[`${part}Norm`] = model.norm(`${name}.${part}_norm`, "rms");
  }

  // Projects what is attended to; positions count from `first`.
  read(seen, x, n, first) {
    const keys = this.kNorm(this.k.times(x, n));
    seen.add(this.turned(keys, n, first, this.keyHeads), this.v.times(x, n));
  }

  turned(x, n, first, heads) {
    const { positions, wide } = this;
    if (positions.rotate) {
      for (let t = 0; t < n; t += 1) {
        for (let head = 0; head < heads; head += 1) positions.rotate(x, first + t, (t * heads + head) * wide);
      }
    }
    return x;
  }

  // Where a head's key or value begins among those that were read.
  placeOf(key, head) {
    return (key * this.keyHeads + Math.floor(head / this.group)) * this.wide;
  }

  // q · k / √d_k, with what the positions add, of a query at position `row`.
  score(query, row, keys, key, head) {
    const { wide, positions, divisor } = this;
    const [from, to] = [head * wide, this.placeOf(key, head)];
    let product = 0;
    for (let i = 0; i < wide; i += 1) product += query[from + i] * keys[to + i];
    return product / divisor + (positions.bias ? positions.bias(this.layer, head, key - row, query, from) : 0);
  }

  // (n × d_model): softmax(scores) V of every head through W^O (equation 1); a head that is off gives zeros.
  attend(seen, x, n, first, off) {
    const { heads, wide } = this;
    const output = new Float32Array(n * heads * wide);
    const queries = this.turned(this.qNorm(this.q.times(x, n)), n, first, heads);
    for (let t = 0; t < n; t += 1) {
      const query = queries.subarray(t * heads * wide, (t + 1) * heads * wide);
      const visible = this.causal ? first + t + 1 : seen.count;
      const weights = new Float32Array(heads * visible);
      for (let head = 0; head < heads; head += 1) {
        const row = weights.subarray(head * visible, (head + 1) * visible);
        for (let key = 0; key < visible; key += 1) row[key] = this.score(query, first + t, seen.keys, key, head);
        softmax(row);
        if (!off.has(`${this.kind}.${this.layer}.${head}`)) {
          this.gather(output, (t * heads + head) * wide, row, seen.values, head);
        }
      }
      seen.queries.push(query);
      seen.weights.push(weights);
    }
    return this.out.times(output, n);
  }

  gather(output, at, weights, values, head) {
    const { wide } = this;
    for (let key = 0; key < weights.length; key += 1) {
      const [weight, from] = [weights[key], this.placeOf(key, head)];
      for (let i = 0; i < wide; i += 1) output[at + i] += weight * values[from + i];
    }
  }

  // (heads × queries × keys) weights as they were computed, zeros behind the mask, and scores of all cells.
  recorded({ queries, weights, keys, count }) {
    const cells = this.heads * queries.length * count;
    const found = { weights: new Float32Array(cells), scores: new Float32Array(cells) };
    for (let head = 0, at = 0; head < this.heads; head += 1) {
      for (const [row, query] of queries.entries()) {
        const visible = weights[row].length / this.heads;
        found.weights.set(weights[row].subarray(head * visible, (head + 1) * visible), at);
        for (let key = 0; key < count; key += 1, at += 1) found.scores[at] = this.score(query, row, keys, key, head);
      }
    }
    return found;
  }
}

function softmax(row) {
  let [most, total] = [-Infinity, 0];
  for (let i = 0; i < row.length; i += 1) most = Math.max(most, row[i]);
  for (let i = 0; i < row.length; i += 1) total += row[i] = Math.exp(row[i] - most);
  for (let i = 0; i < row.length; i += 1) row[i] /= total;
}

// One layer of a stack: self-attention, in the decoder cross-attention, feed-forward; each with its residual.
class Layer {
  constructor(model, side, layer, positions) {
    const name = `${side}.layers.${layer}`;
    Object.assign(this, { name, model, act: ACTIVATIONS[model.config.activation] });
    this.own = new Attention(model, `${name}.self_attention`, side, layer, positions);
    const crosses = side === "decoder" && !model.continues;
    this.cross = crosses ? new Attention(model, `${name}.cross_attention`, "cross", layer, {}) : null;
    for (const part of ["inner", "outer"]) this[part] = model.matrix(`${name}.feed_forward.${part}`);
    this.gate = model.config.gated ? model.matrix(`${name}.feed_forward.gate`) : null;
    const norms = ["self_attention", "cross_attention", "feed_forward"];
    this.norms = Object.fromEntries(norms.map((each) => [each, model.norm(`${name}.${each}_residual.norm`)]));
  }

  // LayerNorm(x + Sublayer(x)) as in the paper, or x + Sublayer(LayerNorm(x)); `source` is what the sub-layer reads.
  around(x, name, sublayer, source = x) {
    const own = this.norms[name];
    return this.model.config.norm === "pre" ? sum(x, sublayer(own(source))) : own(sum(x, sublayer(source)));
  }

  fed(x, n) {
    const units = (this.gate ?? this.inner).times(x, n).map(this.act);
    const gated = this.gate && this.inner.times(x, n);
    return this.outer.times(gated ? units.map((each, i) => each * gated[i]) : units, n);
  }

  pass(x, n, first, { own, cross }, off) {
    const entered = x;
    x = this.around(x, "self_attention", (read) => {
      this.own.read(own, read, n, first);
      return this.own.attend(own, read, n, first, off);
    });
    if (cross) x = this.around(x, "cross_attention", (read) => this.cross.attend(cross, read, n, first, off));
    return this.around(x, "feed_forward", (read) => this.fed(read, n), this.model.config.parallel ? entered : x);
  }
}

export class Model {
  // `memory` is the kernel's, or null for plain JavaScript.
  constructor(config, tensors, memory) {
    Object.assign(this, { config, tensors, memory });
    this.ends = new Set([config.eos_id ?? 2, ...(config.other_ends ?? [])]);
    this.continues = config.architecture === "language_model";
    this.wide = config.head_width ?? config.d_model / config.n_heads;
    this.keyHeads = config.n_key_heads ?? config.n_heads;
    this.divisor = config.scaled_scores === false ? 1 : Math.sqrt(this.wide);
    this.tables = { encoder: this.table("embedding") };
    this.tables.decoder = config.shared_embeddings === false ? this.table("target_embedding") : this.tables.encoder;
    this.output = config.tied_embeddings === false ? this.matrix("output", "output_bias") : this.tables.decoder;
    const sides = this.continues ? ["decoder"] : ["encoder", "decoder"];
    this.stacks = Object.fromEntries(sides.map((side) => [side, this.stack(side)]));
    this.tensors = null; // they are in the kernel's memory
  }

  matrix(name, bias) {
    return new Matrix(this.memory, this.tensors, name, bias);
  }

  // Embeddings, and the output projection if it is tied to them; only that adds the output's bias.
  table(name) {
    return this.matrix(name, "output_bias");
  }

  // `by` says how, if not as the config does.
  norm(name, by = this.config.norm_by) {
    return norm({ ...this.config, norm_by: by }, this.tensors, name);
  }

  stack(side) {
    const positions = positionsOf(this.config, this.tensors, side, this.wide);
    const count = this.config[this.continues ? "n_layers" : `n_${side}_layers`] ?? 6;
    const layers = Array.from({ length: count }, (_, i) => new Layer(this, side, i, positions));
    const [embedded, end] = ["embedding_norm", "final_norm"].map((each) => this.norm(`${side}.${each}`));
    return { positions, layers, embedded, end };
  }

  // (n × d_model) what enters a stack: embeddings times √d_model, plus positions (section 3.4 and 3.5).
  embed(ids, side, first) {
    const { positions, embedded } = this.stacks[side];
    const { d_model: d, scaled_embeddings: scaled } = this.config;
    const x = new Float32Array(ids.length * d);
    for (const [t, id] of ids.entries()) {
      const added = positions.added?.(first + t);
      const row = this.tables[side].row(id);
      for (let i = 0; i < d; i += 1) {
        x[t * d + i] = row[i] * (scaled === false ? 1 : Math.sqrt(d)) + (added ? added[i] : 0);
      }
    }
    return embedded(x);
  }

  run(side, ids, first, seen, off) {
    const { layers, end } = this.stacks[side];
    let x = this.embed(ids, side, first);
    for (const [i, layer] of layers.entries()) x = layer.pass(x, ids.length, first, seen[i], off);
    return end(x);
  }

  // Translates: `given` ids are followed instead of the best ones, and heads of `off` ("cross.0.3", from 0) give zeros.
  // `heard` gets the steps now and then, and says whether to go on, so that another sentence can take the place of this
  // one; null if it does not.
  async translate({ ids, given = null, off = [], limit }, heard = () => true) {
    const { encoder, decoder } = this.stacks;
    const silent = new Set(off);
    const source = encoder.layers.map(() => ({ own: this.seen() }));
    const memory = this.run("encoder", ids, 0, source, silent);
    const target = decoder.layers.map(() => ({ own: this.seen(), cross: this.seen() }));
    for (const [i, { cross }] of decoder.layers.entries()) cross.read(target[i].cross, memory, ids.length, 0);
    const plan = { start: this.config.bos_id ?? 1, fixed: given ?? [], limit: given?.length ?? limit };
    const steps = await this.written({ target, silent, ...plan }, heard);
    return steps && { steps, kinds: this.recorded(source, target) };
  }

  // Continues a text: a language model reads `start`, then `prompt`; as `translate` otherwise.
  async goOn({ start, prompt, given = null, off = [], limit }, heard = () => true) {
    const target = this.stacks.decoder.layers.map(() => ({ own: this.seen() }));
    const plan = { start, fixed: given ?? prompt, limit: given?.length ?? limit };
    const steps = await this.written({ target, silent: new Set(off), ...plan }, heard);
    return steps && { steps, kinds: this.recorded([], target) };
  }

  seen() {
    return new Seen(this.keyHeads * this.wide);
  }

  // Writes token by token; `fixed` ones are followed first, none of which ends the text.
  async written({ target, silent, start, fixed, limit }, heard) {
    const steps = [];
    const ended = () => steps.length > fixed.length && this.ends.has(steps.at(-1).id);
    for (let told = performance.now(); steps.length < limit && !ended(); ) {
      const x = this.run("decoder", [steps.at(-1)?.id ?? start], steps.length, target, silent);
      steps.push(this.step(x, fixed[steps.length]));
      if (performance.now() - told < SLICE) continue;
      if (!(await heard(steps))) return null;
      told = performance.now();
    }
    return steps;
  }

  // What every head of every layer did, by kind.
  recorded(source, target) {
    const { encoder, decoder } = this.stacks;
    const kinds = [["decoder", decoder, target, "own"]];
    if (encoder) {
      kinds.unshift(["encoder", encoder, source, "own"]);
      kinds.push(["cross", decoder, target, "cross"]);
    }
    const found = kinds.map(([kind, { layers }, all, part]) => {
      const shape = [all[0][part].queries.length, all[0][part].count];
      const each = layers.map((layer, i) => layer[part].recorded(all[i][part]));
      return [kind, { size: [layers.length, this.config.n_heads], shape, layers: each }];
    });
    return Object.fromEntries(found);
  }

  // The token that is written after a vector of the decoder, its log-probability in nats, and the best ones.
  step(x, given) {
    const scale = this.config.scaled_output ? this.config.d_model ** -0.5 : 1;
    const logits = this.output.times(scale === 1 ? x : x.map((each) => each * scale));
    const best = largest(logits, BEST);
    let total = 0;
    for (let i = 0; i < logits.length; i += 1) total += Math.exp(logits[i] - logits[best[0]]);
    const log = (id) => logits[id] - logits[best[0]] - Math.log(total);
    const barred = best.map((each) => Boolean(this.config.forbidden?.includes(each)));
    const id = given ?? best[barred.indexOf(false)];
    return { id, log: log(id), best, logs: best.map(log), barred };
  }
}

// The places of the largest numbers, largest first.
function largest(numbers, count) {
  const best = [];
  for (let i = 0, least = -Infinity; i < numbers.length; i += 1) {
    if (numbers[i] <= least) continue;
    let at = best.length;
    while (at > 0 && numbers[i] > numbers[best[at - 1]]) at -= 1;
    best.splice(at, 0, i);
    if (best.length > count) best.pop();
    if (best.length === count) least = numbers[best[count - 1]];
  }
  return best;
}
