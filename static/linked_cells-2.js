// The cells of the linked view: one class for each way of drawing. A cell draws when its feed arrives, and
// follows the cursor without drawing again.

export const element = (tag, name, text, attributes = {}) => {
  const node = document.createElement(tag);
  if (name) node.className = name;
  if (text !== undefined) node.textContent = text;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
};
export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const shape = (tag, attributes) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
};
const escape = (text) => text.replace(/[&<>#]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", "#": "&#35;" })[c]);
const short = (text) => (text.length > 13 ? `${text.slice(0, 12)}…` : text);
const CONFIG = { displayModeBar: false, doubleClick: false, responsive: false };
const SMALLEST_CELL = 10;
const LISTED = 10;

function decode(values) {
  if (!values || values.bdata === undefined) return values;
  const bytes = Uint8Array.from(atob(values.bdata), (c) => c.charCodeAt(0));
  return values.dtype === "f4" ? new Float32Array(bytes.buffer) : bytes;
}

// Spans [start, stop) of tokens, one for each row or column: which one holds a token, or how far they come.
const holding = (spans, token) => spans.findIndex(([start, stop]) => start <= token && token < stop);
const reached = (spans, token) => spans.filter(([start]) => start <= token).length - 1;

class Cell {
  constructor(view, name) {
    Object.assign(this, { view, name, drawn: null, width: 0 });
    this.root = element("figure", `lv-cell lv-${name}`, undefined, { "data-plot": name });
    this.title = element("div", "lv-title");
    this.body = element("div", "lv-body");
    this.caption = element("figcaption", "lv-caption");
    this.root.append(this.title, this.body, this.caption);
  }

  // The feed, once it speaks of the translation on the screen.
  get data() {
    return this.view.current(this.name);
  }

  refresh(lib) {
    const [data, width] = [this.data, this.root.clientWidth];
    if (!data || !width) return false;
    if (this.drawn === data && this.width === width) return true;
    this.root.dataset.hue = data.hue || "";
    const fresh = this.drawn !== data;
    Object.assign(this, { drawn: data, width });
    this.draw(lib, data, width, fresh);
    if (data.alt) Object.entries({ role: "group", "aria-label": data.alt }).forEach((each) => this.body.setAttribute(...each));
    return true;
  }

  follow() {
    if (this.drawn && this.drawn === this.data) this.update(this.drawn);
  }

  update() {}
  ring() {}
  leave() {}
  row() { return 0; }

  words(strips) {
    const data = this.data;
    if (!data) return;
    const at = this.view.position(data.rows || data.follows) ?? 0;
    const about = (data.about || "").replace("{reads}", strips.names.reads[at]).replace("{predicts}", strips.names.predicts[at])
      .replace("{source}", strips.names.source[at]);
    this.title.replaceChildren(element("b", "", data.title), element("span", "lv-about", about));
    const step = data.rows === "step" ? ` · step ${at + 1} of ${strips.steps}` : "";
    this.caption.replaceChildren(element("span", "", data.caption.replace("{step}", step)));
    if (data.badge) this.caption.append(" · ", element("span", data.badge.passed ? "lv-badge" : "lv-badge lv-failed", data.badge.text, { title: data.badge.title, tabindex: "0" }));
    const note = data.notes && data.notes[this.row()];
    if (note) this.caption.append(element("span", "lv-note", ` · ${note}`));
    if (data.legend) this.caption.append(this.legend(data.legend));
  }

  legend({ title, marks }) {
    const line = element("span", "lv-legend", undefined, { role: "img", "aria-label": `${title}: ${marks.map(([text]) => text).join(", ")}` });
    line.append(title);
    for (const [text, color] of marks) {
      const mark = element("span", "lv-mark", text);
      mark.prepend(Object.assign(element("i"), { style: `background:${color}` }));
      line.append(mark);
    }
    return line;
  }
}

class PlotCell extends Cell {
  constructor(view, name) {
    super(view, name);
    this.node = element("div", "lv-plot");
    this.body.classList.add("lv-scroll");
    this.body.append(this.node);
    this.root.addEventListener("touchstart", (event) => event.stopPropagation(), { capture: true, passive: true });
  }

  draw(lib, data, width, fresh) {
    if (fresh || !this.figure) this.figure = this.parse(data);
    this.lib = lib;
    const { traces, layout } = this.figure;
    const [wide, high] = this.size(data, width);
    Object.assign(layout, { width: wide, height: high, font: { ...layout.font, color: this.view.ink, family: this.view.family } });
    Object.assign(this.node.style, { width: `${wide}px`, height: `${high}px` });
    lib.react(this.node, traces, layout, CONFIG);
    if (!this.wired) this.wire();
    this.placed();
  }

  size(data, width) {
    return [width, data.height || Math.min(width, data.largest)];
  }

  parse(data) {
    const { data: traces, layout, frames } = JSON.parse(data.figure);
    for (const axis of ["xaxis", "yaxis", "yaxis2"]) if (layout[axis]) layout[axis] = { ...layout[axis], fixedrange: false };
    layout.hoverlabel = { ...layout.hoverlabel, font: { size: 12 } };
    this.frames = Object.fromEntries((frames || []).map((frame) => [frame.name, frame]));
    return { traces, layout };
  }

  wire() {
    this.wired = true;
    const guarded = (action) => (event) => this.view.guard(() => action(event));
    this.node.on("plotly_afterplot", guarded(() => this.placed()));
    this.node.on("plotly_hover", guarded(({ points }) => this.hovered(points[0])));
    this.node.on("plotly_unhover", guarded(() => this.view.hover(null)));
    this.node.on("plotly_click", guarded(({ points }) => this.clicked(points[0])));
  }

  // Plotly's own box, in which what is laid over the plot has its place.
  over(node) {
    const stack = this.node.querySelector(".svg-container");
    if (stack && node.parentNode !== stack) stack.append(node);
  }

  placed() {}
  hovered() {}
  clicked() {}
  leave() { if (this.wired) this.lib.purge(this.node); }
}

// Rows and columns of a head, and where the cursor stands among them; shared by three ways of drawing.
const Head = (Base) => class extends Base {
  row() { return holding(this.data.spans.rows, this.view.position(this.data.rows)); }

  column() {
    const key = this.view.key(this.data);
    return key === null ? -1 : holding(this.data.spans.columns, key);
  }

  weight(row, column) { return this.values[(row * this.data.names.columns.length + column) * this.channels]; }

  sentence() { return this.data.sentences[this.row()] || [this.data.absent]; }

  says() {
    const [row, column] = this.data ? [this.row(), this.column()] : [-1, -1];
    if (!this.values || row < 0 || column < 0) return "";
    const { rows, columns } = this.data.names;
    return `${rows[row]}, ${columns[column]}: weight ${this.weight(row, column).toFixed(2)}.`;
  }

  pick(row, column) {
    const { spans } = this.data;
    this.view.pick(this.data, row < 0 ? null : spans.rows[row], column < 0 ? null : spans.columns[column]);
  }

  hover(row, column) {
    const { spans } = this.data;
    this.view.hover(this, row < 0 ? null : spans.rows[row], column < 0 ? null : spans.columns[column]);
  }
};

class MapCell extends Head(PlotCell) {
  constructor(view, name) {
    super(view, name);
    this.overlay = element("div", "lv-overlay");
    this.sheet = element("div", "lv-sheet");
    this.parts = {};
    for (const part of ["fade", "across", "down", "row", "column", "hover"]) this.sheet.append((this.parts[part] = element("div", `lv-${part}`, undefined, { hidden: "" })));
    this.overlay.append(this.sheet);
    this.pins = ["rows", "columns", "corner"].map((side) => element("div", `lv-pin lv-pin-${side}`, undefined, { hidden: "", "aria-hidden": "true" }));
    this.body.prepend(...this.pins);
  }

  // Never so small that a cell cannot be told from its neighbour: then the map scrolls in its own frame.
  size(data, width) {
    const { margin } = this.figure.layout;
    const cells = Math.max(data.names.rows.length, data.names.columns.length);
    const side = Math.min(width, data.largest);
    this.scrolls = side < SMALLEST_CELL * cells + margin.l + margin.r;
    if (!this.scrolls) return [side, side];
    const { rows, columns } = data.names;
    return [SMALLEST_CELL * columns.length + margin.l + margin.r, SMALLEST_CELL * rows.length + margin.t + margin.b];
  }

  parse(data) {
    const figure = super.parse(data);
    const [map] = figure.traces;
    const { rows, columns } = data.names;
    const masked = decode(map.z);
    this.values = decode(map.customdata);
    this.channels = this.values.length / (rows.length * columns.length);
    map.text = rows.map((row, i) => columns.map((column, j) => escape(`${row}, ${column}${masked[i * columns.length + j] ? "" : " (masked)"}`)));
    return figure;
  }

  placed() {
    const layout = this.node._fullLayout;
    if (!layout || !this.drawn) return;
    const { xaxis, yaxis } = layout;
    const [rows, columns] = [this.drawn.names.rows.length, this.drawn.names.columns.length];
    Object.assign(this.overlay.style, { left: `${xaxis._offset}px`, top: `${yaxis._offset}px`, width: `${xaxis._length}px`, height: `${yaxis._length}px` });
    const x = [xaxis.d2p(-0.5), xaxis.d2p(columns - 0.5)];
    const y = [yaxis.d2p(-0.5), yaxis.d2p(rows - 0.5)];
    Object.assign(this.sheet.style, { left: `${x[0]}px`, top: `${y[0]}px`, width: `${x[1] - x[0]}px`, height: `${y[1] - y[0]}px` });
    this.set({ rows, columns });
    this.over(this.overlay);
    this.pin(xaxis, yaxis);
  }

  // Labels that stay while the map scrolls under them.
  pin(xaxis, yaxis) {
    for (const pin of this.pins) pin.hidden = !this.scrolls;
    this.body.classList.toggle("lv-scrolls", this.scrolls);
    if (!this.scrolls) return;
    const [left, top, corner] = this.pins;
    corner.replaceChildren(element("div"));
    const label = (axis, i, at) => {
      const node = element("span", "", axis.ticktext[i].replace(/&#35;/g, "#").replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&"));
      node.style.setProperty("--at", `${axis._offset + axis.d2p(at)}px`);
      return node;
    };
    for (const [pin, axis] of [[left, yaxis], [top, xaxis]]) {
      const box = element("div");
      box.append(...axis.tickvals.map((at, i) => label(axis, i, at)));
      pin.replaceChildren(box);
    }
    const { width, height } = this.node._fullLayout;
    for (const pin of this.pins) {
      for (const [name, value] of Object.entries({ width, height, left: xaxis._offset, top: yaxis._offset })) pin.style.setProperty(`--${name}`, `${value}px`);
    }
  }

  set(values) {
    for (const [name, value] of Object.entries(values)) this.sheet.style.setProperty(`--${name}`, value);
  }

  update(data) {
    const [row, column] = [this.row(), this.column()];
    this.set({ row: row < 0 ? reached(data.spans.rows, this.view.position(data.rows)) : row, column: Math.max(column, 0) });
    this.parts.row.hidden = row < 0;
    this.parts.column.hidden = row < 0 || column < 0;
    this.parts.fade.hidden = !data.fade;
    if (this.scrolls && row >= 0) this.reveal(row, column);
  }

  reveal(row, column) {
    const { xaxis, yaxis } = this.node._fullLayout || {};
    if (!yaxis) return;
    const frame = this.body;
    const show = (at, from, size) => (at < from || at > from + size ? Math.max(at - size / 2, 0) : from);
    frame.scrollTop = show(yaxis.d2p(row), frame.scrollTop, frame.clientHeight - yaxis._offset - SMALLEST_CELL);
    if (column >= 0) frame.scrollLeft = show(xaxis.d2p(column), frame.scrollLeft, frame.clientWidth - xaxis._offset - SMALLEST_CELL);
  }

  hovered(point) { if (point.curveNumber === 0) this.hover(point.y, point.x); }
  clicked(point) { if (point.curveNumber === 0) this.pick(point.y, point.x); }

  // A cross under the pointer itself; where another cell is hovered, a ring on the same tokens.
  ring(places, own) {
    const found = places && { row: places[this.drawn.rows], column: places[this.drawn.columns] };
    if (found && !own && this.drawn.rows === this.drawn.columns) found.column = undefined;
    const at = (spans, span) => (span ? holding(spans, span[0]) : -1);
    const row = found ? at(this.drawn.spans.rows, own ? places.row : found.row) : -1;
    const column = found ? at(this.drawn.spans.columns, own ? places.column : found.column) : -1;
    this.set({ "hover-row": Math.max(row, 0), "hover-column": Math.max(column, 0) });
    this.parts.across.hidden = this.parts.down.hidden = !own || row < 0 || column < 0;
    this.parts.hover.hidden = Boolean(own) || (row < 0 && column < 0);
    this.parts.hover.classList.toggle("lv-whole-row", column < 0);
    this.parts.hover.classList.toggle("lv-whole-column", row < 0);
  }
}

class BarsCell extends PlotCell {
  draw(lib, data, width, fresh) {
    if (fresh) this.frame = null;
    if (fresh || !this.figure) this.figure = this.parse(data);
    this.merge(data);
    super.draw(lib, data, width, false);
    this.write();
  }

  row() { return this.index(this.data); }

  index(data) {
    const at = this.view.position(data.follows);
    return data.spans ? holding(data.spans, at) : at;
  }

  update(data) {
    if (!this.lib || !this.merge(data)) return;
    this.lib.react(this.node, this.figure.traces, this.figure.layout, CONFIG);
    this.write();
  }

  merge(data) {
    const frame = this.frames[this.index(data)];
    if (!frame || this.frame === frame) return false;
    this.frame = frame;
    const { traces, layout } = this.figure;
    const changed = frame.layout || {};
    layout.yaxis = { ...layout.yaxis, ...changed.yaxis };
    if (changed.title) layout.title = { ...layout.title, ...changed.title };
    traces[0] = { ...traces[0], ...frame.data[0] };
    this.texts = traces[0].text;
    delete traces[0].text;
    return true;
  }

  // The numbers at the ends of the bars: Plotly would measure each of them at every step.
  write() {
    const { xaxis, yaxis } = this.node._fullLayout;
    const shares = decode(this.figure.traces[0].x);
    this.ends ??= element("div", "lv-ends");
    this.ends.replaceChildren(...(this.texts || []).map((text, i) => {
      const node = element("span", "", text.replace("&lt;", "<"));
      Object.assign(node.style, { left: `${xaxis._offset + xaxis.d2p(shares[i]) + 4}px`, top: `${yaxis._offset + yaxis.d2p(i)}px` });
      return node;
    }));
    this.over(this.ends);
  }
}

class TilesCell extends PlotCell {
  clicked(point) { if (point.customdata) this.view.tell({ head: [this.drawn.picks, ...point.customdata] }); }
}

// The whole matrix, pooled, with a frame around the part that is drawn in full; a click moves the cursor.
class WholeCell extends PlotCell {
  constructor(view, name) {
    super(view, name);
    this.frame = element("div", "lv-window");
  }

  size(data, width) {
    const side = Math.min(width, data.largest);
    return [side, side];
  }

  placed() {
    const { xaxis, yaxis } = this.node._fullLayout || {};
    const part = this.view.current(this.view.spec.focus);
    if (!xaxis || !part || !this.drawn) return;
    const edges = (axis, all, [first, last]) => [axis.d2p(holding(all, first) + 0.5), axis.d2p(holding(all, last - 1) + 1.5)];
    const ends = (spans) => [spans[0][0], spans[spans.length - 1][1]];
    const x = edges(xaxis, this.drawn.spans.columns, ends(part.spans.columns));
    const y = edges(yaxis, this.drawn.spans.rows, ends(part.spans.rows));
    Object.assign(this.frame.style, { left: `${xaxis._offset + x[0]}px`, top: `${yaxis._offset + y[0]}px`, width: `${x[1] - x[0]}px`, height: `${y[1] - y[0]}px` });
    this.over(this.frame);
  }

  update() { this.placed(); }

  clicked(point) {
    const { spans } = this.drawn;
    const near = (all, at) => all[clamp(Math.round(at) - 1, 0, all.length - 1)];
    this.view.pick(this.drawn, near(spans.rows, point.y), near(spans.columns, point.x));
  }
}

// Queries at the left, keys at the right, a line for each link; a token under the pointer stands alone.
class LinesCell extends Head(Cell) {
  draw(lib, data, width) {
    this.values = decode(data.values);
    this.channels = 1;
    const { rows, columns } = data.names;
    const longest = Math.max(rows.length, columns.length);
    const pitch = clamp(data.largest / longest, 12, 26);
    const edge = clamp(width * 0.22, 70, 120);
    const [right, height] = [Math.min(width, data.largest + 2 * edge) - edge, pitch * longest + 8];
    this.at = { left: edge, right, pitch, y: (i) => 4 + pitch * (i + 0.5) };
    const svg = shape("svg", { class: "lv-lines", width: right + edge, height, "font-size": Math.min(12, pitch - 1) });
    this.groups = rows.map(() => shape("g", { class: "lv-query" }));
    this.links = data.links.map((link) => this.line(data, link));
    this.labels = { row: data.labels.rows.map((text, i) => this.label("row", text, i)), column: data.labels.columns.map((text, j) => this.label("column", text, j)) };
    svg.append(...this.groups, ...this.labels.row, ...this.labels.column);
    svg.addEventListener("pointermove", (event) => this.view.guard(() => this.near(event, svg)));
    svg.addEventListener("pointerleave", () => this.view.guard(() => { this.tip.hidden = true; }));
    this.tip = element("div", "lv-tip", undefined, { hidden: "" });
    this.body.replaceChildren(svg, this.tip, ...this.keys(data));
    this.alone = null;
  }

  line(data, [row, column, weight, head]) {
    const { color, dash } = data.heads[head];
    const shift = (head - (data.heads.length - 1) / 2) * 2;
    const [y1, y2] = [this.at.y(row) + shift, this.at.y(column) + shift];
    const width = Math.max(0.6, 7 * weight);
    const node = shape("line", { x1: this.at.left, x2: this.at.right, y1, y2, stroke: color, "stroke-width": width, "stroke-dasharray": dash });
    this.groups[row].append(node);
    return { node, row, column, weight, head, y1, y2 };
  }

  label(side, text, i) {
    const x = side === "row" ? this.at.left - 6 : this.at.right + 6;
    const node = shape("text", { class: "lv-token", x, y: this.at.y(i), "text-anchor": side === "row" ? "end" : "start", "dominant-baseline": "central" });
    node.textContent = short(text);
    const name = this.data.names[`${side}s`][i];
    node.append(Object.assign(shape("title", {}), { textContent: name }));
    const cell = () => (side === "row" ? [i, -1] : [-1, i]);
    node.addEventListener("pointerenter", () => this.view.guard(() => { this.isolate({ [side]: i }); this.hover(...cell()); }));
    node.addEventListener("pointerleave", () => this.view.guard(() => { this.isolate(this.alone); this.view.hover(null); }));
    node.addEventListener("click", () => this.view.guard(() => {
      const same = this.alone && this.alone[side] === i;
      this.isolate((this.alone = same ? null : { [side]: i }));
      this.pick(...cell());
    }));
    return node;
  }

  keys(data) {
    if (data.heads.length < 2) return [];
    const line = element("div", "lv-heads");
    for (const { name, color, dash } of data.heads) {
      const sample = shape("svg", { width: 28, height: 8 });
      sample.append(shape("line", { x1: 0, x2: 28, y1: 4, y2: 4, stroke: color, "stroke-width": 4, "stroke-dasharray": dash }));
      const mark = element("span", "lv-mark", name);
      mark.prepend(sample);
      line.append(mark);
    }
    return [line];
  }

  // All lines of one query or of one key; null shows every line again.
  isolate(token) {
    this.body.firstChild.classList.toggle("lv-isolated", Boolean(token));
    for (const { node, row, column } of this.links) node.classList.toggle("lv-alone", Boolean(token) && (token.row === row || token.column === column));
  }

  near(event, svg) {
    const box = svg.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const share = (x - this.at.left) / (this.at.right - this.at.left);
    const inside = share >= 0 && share <= 1;
    const away = ({ y1, y2 }) => Math.abs(y1 + share * (y2 - y1) - y);
    const isolated = this.body.firstChild.classList.contains("lv-isolated");
    const shown = inside ? this.links.filter((link) => away(link) < 7 && (!isolated || link.node.classList.contains("lv-alone"))) : [];
    const link = shown.reduce((best, each) => (best && away(best) <= away(each) ? best : each), null);
    for (const each of this.links) each.node.classList.toggle("lv-under", each === link);
    this.tip.hidden = !link;
    if (inside) this.view.hover(...(link ? [this, this.data.spans.rows[link.row], this.data.spans.columns[link.column]] : [null]));
    if (!link) return;
    const { names, heads } = this.data;
    this.tip.textContent = `${heads.length > 1 ? `${heads[link.head].name} · ` : ""}${names.rows[link.row]}, ${names.columns[link.column]}: weight ${link.weight.toFixed(3)}`;
    Object.assign(this.tip.style, { left: `${Math.min(x + 12, box.width - 180)}px`, top: `${y + 14}px` });
  }

  update(data) {
    const [row, last] = [this.row(), reached(data.spans.rows, this.view.position(data.rows))];
    this.groups.forEach((group, i) => {
      group.classList.toggle("lv-current", i === row);
      group.classList.toggle("lv-coming", data.fade && i > last);
    });
    this.mark("row", row, "lv-at");
    this.mark("column", this.column(), "lv-at");
  }

  mark(side, index, name) {
    this.labels[side].forEach((node, i) => node.classList.toggle(name, i === index));
  }

  ring(places, own) {
    const at = (spans, span) => (span ? holding(spans, span[0]) : -1);
    const { rows, columns, spans } = this.drawn;
    this.mark("row", places ? at(spans.rows, own ? places.row : places[rows]) : -1, "lv-hovered");
    this.mark("column", places ? at(spans.columns, own ? places.column : rows === columns ? null : places[columns]) : -1, "lv-hovered");
  }
}

// The chosen query's keys and the chosen key's queries, strongest first, and the text shaded by weight.
class StrongestCell extends Head(Cell) {
  draw(lib, data) {
    this.values = decode(data.values);
    this.channels = 1;
    this.shades = decode(data.shades);
    this.text = element("p", "lv-shaded", undefined, { dir: data.direction });
    this.tokens = data.labels.columns.map((text, j) => {
      const node = element("button", "lv-token", text, { type: "button", tabindex: "-1", title: data.names.columns[j] });
      node.addEventListener("click", () => this.view.guard(() => this.pick(-1, j)));
      node.addEventListener("pointerenter", () => this.view.guard(() => this.hover(-1, j)));
      node.addEventListener("pointerleave", () => this.view.guard(() => this.view.hover(null)));
      return node;
    });
    this.text.append(...this.tokens);
    this.lists = ["query", "key"].map((of) => element("div", `lv-list lv-list-${of}`));
    const pair = element("div", "lv-lists");
    pair.append(...this.lists);
    this.body.replaceChildren(this.text, pair);
  }

  // Without a chosen key: in self-attention the token of the cursor itself, as a key.
  column() {
    const key = this.view.key(this.data);
    return holding(this.data.spans.columns, key === null ? this.view.position(this.data.rows) : key);
  }

  update(data) {
    const [row, column] = [this.row(), this.column()];
    const { rows, columns } = data.names;
    this.tokens.forEach((node, j) => {
      const share = row < 0 ? 0 : this.shades[row * columns.length + j] / 255;
      node.style.setProperty("--share", `${Math.round(100 * share)}%`);
      node.classList.toggle("lv-strong", share > 0.55);
      node.classList.toggle("lv-at", j === column);
    });
    const keys = row < 0 ? [] : columns.map((name, j) => [name.replace(/^key /, ""), this.weight(row, j), () => this.pick(-1, j)]);
    const queries = column < 0 ? [] : rows.map((name, i) => [name.replace(/^query /, ""), this.weight(i, column), () => this.pick(i, -1)]);
    this.list(this.lists[0], row < 0 ? data.absent : `${rows[row]}: its keys`, keys, "key");
    this.list(this.lists[1], column < 0 ? data.absent : `${columns[column]}: its queries`, queries, data.rows === "step" ? "row" : "query");
  }

  list(place, title, all, head) {
    const seen = all.filter(([, weight]) => weight > 0).sort((one, other) => other[1] - one[1]);
    const table = element("table");
    const widths = element("colgroup");
    for (const name of ["token", "number", "bar"]) widths.append(element("col", `lv-col-${name}`));
    table.append(element("caption", "", title), widths);
    const line = element("tr");
    line.append(element("th", "", head, { scope: "col" }), element("th", "", "weight", { scope: "col", colspan: "2" }));
    table.append(line);
    for (const [name, weight, act] of seen.slice(0, LISTED)) {
      const entry = element("tr");
      const token = element("td");
      const button = element("button", "lv-entry", undefined, { type: "button", title: name });
      button.append(element("bdi", "", name.length > 40 ? `${name.slice(0, 39)}…` : name));
      button.addEventListener("click", () => this.view.guard(act));
      token.append(button);
      const bar = element("td", "lv-bar");
      bar.append(Object.assign(element("i"), { style: `width:${(100 * weight).toFixed(1)}%` }));
      entry.append(token, element("td", "lv-number", weight.toFixed(2)), bar);
      table.append(entry);
    }
    const rest = seen.slice(LISTED).reduce((sum, [, weight]) => sum + weight, 0);
    place.replaceChildren(table);
    if (seen.length > LISTED) place.append(element("p", "lv-rest", `and ${seen.length - LISTED} more with ${rest.toFixed(2)} together`));
  }

  ring(places, own) {
    const { rows, columns, spans } = this.drawn;
    const span = places && (own ? places.column : rows === columns ? null : places[columns]);
    const column = span ? holding(spans.columns, span[0]) : -1;
    this.tokens.forEach((node, j) => node.classList.toggle("lv-hovered", j === column));
  }
}

const CLASSES = { overview: TilesCell, whole: WholeCell, lines: LinesCell, strongest: StrongestCell, next: BarsCell, row: BarsCell };

export function makeCell(view, name) {
  return new (CLASSES[name] || MapCell)(view, name);
}
