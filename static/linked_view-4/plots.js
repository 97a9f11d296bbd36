// The cells that plotly.js draws: map, bars, tiles, whole matrix.

import { Cell, Head, clamp, decode, element, holding, reached } from "./cell.js";

const CONFIG = { displayModeBar: false, doubleClick: false, responsive: false };
const SMALLEST_CELL = 10;
const escape = (text) => text.replace(/[&<>#]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", "#": "&#35;" })[c]);

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

export class MapCell extends Head(PlotCell) {
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

export class BarsCell extends PlotCell {
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

export class TilesCell extends PlotCell {
  clicked(point) { if (point.customdata) this.view.tell({ head: [this.drawn.picks, ...point.customdata] }); }
}

// The whole matrix, pooled, with a frame around the part that is drawn in full; a click moves the cursor.
export class WholeCell extends PlotCell {
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
