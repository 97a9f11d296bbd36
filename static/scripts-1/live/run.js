// A run of the browser's engine, with what the view of a living page asks of a run. What does not depend on the
// sentence (colours, titles, choice of heads) is that of the run which Python wrote into the page.

import { filled, written } from "../living/data.js";
import { pooled } from "../living/heads.js";
import { direction, escaped } from "../engine/chips.js";
import { percent, phrase, said } from "./says.js";

// Px of a map, and around its cells; the share of a tile that is the gap beside it; letters of a label.
const [SIDE, AROUND, GAP, LETTERS] = [760, 104, 0.12, 12];
const ROWS = { encoder: "source", decoder: "reads", cross: "predicts" };
const COLUMNS = { encoder: "source", decoder: "reads", cross: "source" };
const FORCED = "your translation, not the model's";

const level = (weight) => 1 + Math.round(254 * Math.min(Math.max(weight, 0), 1));

// The labels of an axis, as many as there is room for; `longest`: cells of the longer side.
function axis(usual, texts, longest, range) {
  const pitch = (SIDE - AROUND) / longest;
  const size = [12, 10].find((font) => pitch >= 0.9 * font) ?? 8;
  const every = Math.ceil((0.75 * size) / pitch);
  const places = texts.map((_, i) => i).filter((i) => i % every === 0);
  return { ...usual, tickvals: places, ticktext: places.map((i) => escaped(texts[i])), tickfont: { size }, range };
}

// The cells behind a causal mask, row by row.
function hatched(trace, count) {
  const [x, y] = [[], []];
  for (let i = 0; i + 1 < count; i += 1) {
    if (i) for (const line of [x, y]) line.push(null);
    x.push(i + 0.5, count - 0.5, count - 0.5, i + 0.5, i + 0.5);
    y.push(i - 0.5, i - 0.5, i + 0.5, i + 0.5, i - 0.5);
  }
  return { ...trace, x, y };
}

// The grid of all heads for tiles of another size.
function regrid(figure, [layers, heads], [high, wide]) {
  const gap = Math.max(1, Math.round(GAP * Math.max(high, wide)));
  const places = (count, side) => Array.from({ length: count }, (_, i) => i * (side + gap) + (side - 1) / 2);
  const [xs, ys] = [places(heads, wide), places(layers, high)];
  const range = (count, side) => [-0.5 - 0.7 * gap, count * (side + gap) - 0.5 - 0.3 * gap];
  const { layout, data } = figure;
  Object.assign(layout.xaxis, { tickvals: xs, range: range(heads, wide) });
  Object.assign(layout.yaxis, { tickvals: ys, range: range(layers, high).toReversed() });
  Object.assign(data[1], { x: ys.flatMap(() => xs), y: ys.flatMap((y) => xs.map(() => y)) });
  const frame = (shape, x, y, more) => {
    const [w, h] = [(wide + more) / 2, (high + more) / 2];
    return { ...shape, x0: x - w, x1: x + w, y0: y - h, y1: y + h };
  };
  const shapes = ys.flatMap((y, i) => xs.map((x, j) => frame(layout.shapes[i * heads + j], x, y, 0)));
  layout.shapes = [...shapes, frame(layout.shapes.at(-1), xs[0], ys[0], gap)];
  return figure;
}

export class BrowserRun {
  // `stored` is the run that Python wrote; `found` what the engine says; `badge` what is known of the engine; `off` how
  // a sentence ends for a head that is off.
  constructor(stored, found, { number, badge, off, writing }) {
    const trace = `${stored.spec.trace}-${number}`;
    Object.assign(this, { stored, found, badge, writing, offText: off, spec: { ...stored.spec, trace } });
    const source = found.kinds.encoder ? found.source.pieces : []; // a language model reads none
    this.tokens = { source, reads: found.reads, predicts: found.predicts };
    this.kinds = Object.fromEntries(Object.entries(found.kinds).map((each) => [each[0], this.kind(...each)]));
    this.shown = { strips: this.stripsFeed(), next: this.next() };
    this.place = stored.place;
  }

  kind(name, { size, shape }) {
    const { shared, tiles } = this.stored.kinds[name];
    const { high, wide } = pooled(new Uint8Array(shape[0] * shape[1]), shape, tiles.most);
    const figure = JSON.stringify(regrid(JSON.parse(tiles.figure), size, [high, wide]));
    const each = [shape[0] / high, shape[1] / wide].map(Math.ceil);
    const joined = each[0] * each[1] > 1 ? `each cell is the maximum over ${each.join("×")} cells` : "";
    const of = { choice: shared.choice, names: this.names(name) };
    return { size, shape, shared: of, tiles: { ...tiles, figure, pooled: joined, badge: this.badge } };
  }

  names(name) {
    const { reads, predicts } = this.tokens;
    const { writing } = this;
    const [read, next] = [writing.names(reads), writing.names(predicts)];
    const rows = name === "encoder" ? writing.names(this.tokens.source).map((each) => `query ${each}`) : null;
    const columns = writing.names(this.tokens[COLUMNS[name]]).map((each) => `key ${each}`);
    return { rows: rows ?? read.map((each, i) => `reads ${each}, predicts ${next[i]}`), columns };
  }

  // The numbers of a head: its part of what the engine recorded.
  numbers(name, [layer, head], what) {
    const { shape, layers } = this.found.kinds[name];
    const count = shape[0] * shape[1];
    return layers[layer][what].subarray(head * count, (head + 1) * count);
  }

  weights(name, head) {
    return [...this.numbers(name, head, "weights")];
  }

  // Colours; 0 behind the mask.
  levels(name, head) {
    const keys = this.found.kinds[name].shape[1];
    const masked = (i) => name === "decoder" && i % keys > Math.floor(i / keys);
    return Uint8Array.from(this.numbers(name, head, "weights"), (weight, i) => (masked(i) ? 0 : level(weight)));
  }

  decimals() {
    return 3;
  }

  map(name, head) {
    const { shape } = this.kinds[name];
    const { spec, tokens, badge, found } = this;
    const off = found.off.includes([name, ...head].join("."));
    const { shared } = this.stored.kinds[name];
    const feed = { ...shared, ...this.head(name, head), name, view: spec.view, trace: spec.trace };
    const sides = this.names(name);
    const hover = { rows: sides.rows.map(escaped), columns: sides.columns.map(escaped) };
    const changes = found.off.length;
    const changed = changes ? `, with ${changes} change${changes > 1 ? "s" : ""}` : "";
    Object.assign(feed, { names: sides, hover: { ...feed.hover, ...hover }, off, acts: ["off", "save"] });
    Object.assign(feed, { spans: { rows: singles(shape[0]), columns: singles(shape[1]) } });
    feed.badge = { ...badge, text: badge.text + changed };
    const [weights, levels] = [this.weights(name, head), this.levels(name, head)];
    const [[opening]] = feed.sentences;
    const openings = tokens[ROWS[name]].map((token) => [opening, this.writing.name(token)]);
    Object.assign(feed, said(weights, { openings, off: this.offText, ...this.keys(name) }, feed));
    feed.figure = JSON.stringify(this.figure(name, head, JSON.parse(feed.figure)));
    const numbers = Float32Array.from({ length: 2 * weights.length }, (_, i) =>
      i % 2 ? this.numbers(name, head, "scores")[i >> 1] : weights[i >> 1],
    );
    return filled(feed, levels, new Uint8Array(numbers.buffer), [...shape, 2]);
  }

  // The keys of a kind as sentences name them, and those that are no text.
  keys(name) {
    const tokens = this.tokens[COLUMNS[name]];
    const special = [...tokens.entries()].filter(([, token]) => this.writing.special.test(token));
    return { keys: tokens.map((token) => this.writing.name(token)), special: Object.fromEntries(special) };
  }

  // What names the head: title, caption, choice.
  head(name, [layer, head]) {
    const { title, caption, choice } = this.stored.kinds[name].shared;
    const usual = this.stored.place.heads[name];
    const first = `${usual}` === `${[layer, head]}` ? "This head" : phrase(usual).replace("h", "H");
    return {
      head: [layer, head],
      title: title.replace(/L\d+ H\d+$/, `L${layer + 1} H${head + 1}`),
      caption: caption.replace(/layer \d+ · head \d+/, `layer ${layer + 1} · head ${head + 1}`),
      choice: { ...choice, head: [layer, head], first: `${first} is this model's default.` },
    };
  }

  figure(name, [layer], figure) {
    const [rows, columns] = [this.tokens[ROWS[name]], this.tokens[COLUMNS[name]]];
    const { layout, data } = figure;
    const longest = Math.max(rows.length, columns.length);
    layout.xaxis = axis(layout.xaxis, this.writing.names(columns, LETTERS), longest, [-0.5, columns.length - 0.5]);
    layout.yaxis = axis(layout.yaxis, this.writing.names(rows, LETTERS), longest, [rows.length - 0.5, -0.5]);
    for (const each of layout.annotations) each.text = each.text.replace(/layer \d+/, `layer ${layer + 1}`);
    figure.data = name === "decoder" && rows.length > 1 ? [data[0], hatched(data[1], rows.length)] : [data[0]];
    return figure;
  }

  // The source token follows the head of cross-attention that is shown.
  strips({ cross }) {
    if (!cross) return { ...this.shown.strips, name: "strips", view: this.spec.view };
    const [, keys] = this.kinds.cross.shape;
    const weights = this.weights("cross", cross);
    const follow = this.tokens.predicts.map((_, t) => {
      const row = weights.slice(t * keys, t * keys + Math.max(1, keys - 1));
      return row.indexOf(Math.max(...row));
    });
    return { ...this.shown.strips, follow, name: "strips", view: this.spec.view };
  }

  stripsFeed() {
    const { source, reads, predicts } = this.tokens;
    const quote = (tokens) => tokens.map((token) => this.writing.name(token));
    const quoted = { source: quote(source), reads: quote(reads), predicts: quote(predicts) };
    const usual = this.stored.shown.strips;
    if (`${quoted.source} ${quoted.predicts}` === `${usual.names.source} ${usual.names.predicts}`) {
      return { ...usual, trace: this.spec.trace }; // with the words under its words
    }
    return {
      ...usual,
      trace: this.spec.trace,
      steps: predicts.length,
      given: this.found.given,
      names: quoted,
      glossed: "",
      claim: null,
      source: this.writing.chips(source),
      target: this.writing.chips(predicts),
      direction: { source: direction(source), target: direction(predicts) },
      tour: usual.tour.map((stop) => ({ ...stop, step: stop.step === null ? null : 0 })),
    };
  }

  // The candidates of each step; the chosen token is always among them.
  next() {
    const steps = this.found.steps.map(({ id, log, best, logs, names: tokens, barred }, i) => {
      if (best.includes(id)) return { logs, tokens, chosen: best.indexOf(id), barred };
      const last = best.length - 1;
      const [kept, written_] = [logs.slice(0, last), tokens.slice(0, last)];
      return { logs: [...kept, log], tokens: [...written_, this.found.predicts[i]], chosen: last, barred };
    });
    const logs = Float32Array.from(steps.flatMap((step) => step.logs));
    const { next } = this.stored.shown;
    const origin = this.found.forced ? FORCED : "decoding: greedy";
    return {
      ...next,
      trace: this.spec.trace,
      caption: `${next.caption.split(" · ")[0]} · ${origin}`,
      ids: [],
      tried: [],
      names: steps.map(({ tokens }) => tokens.map((token) => this.writing.name(token))),
      shares: steps.map((step) => step.logs.map((log, i) => share(log, step.barred[i] && i !== step.chosen))),
      logs: written(new Uint8Array(logs.buffer), "f4", [steps.length, steps[0].logs.length]),
      chosen: steps.map(({ chosen }) => chosen),
    };
  }
}

const share = (log, barred) => (barred ? "barred" : percent(Math.exp(log)));
const singles = (count) => Array.from({ length: count }, (_, i) => [i, i + 1]);
