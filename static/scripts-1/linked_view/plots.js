// The cells that plotly.js draws: bars, tiles, whole matrix, and the base of the map.

import { Cell } from "./cell.js";
import { element, place } from "./dom.js";
import { axesOf, box, shownPart, spanAt } from "./frame.js";
import { holding } from "./spans.js";
import { joined, rowsOf } from "./together.js";
import { decode } from "./values.js";

const CONFIG = { displayModeBar: false, doubleClick: false, responsive: false };

export class PlotCell extends Cell {
  constructor(view, name) {
    super(view, name);
    this.node = element("div", "lv-plot");
    this.body.classList.add("lv-scroll");
    this.body.append(this.node);
    const options = { capture: true, passive: true };
    this.root.addEventListener("touchstart", (event) => event.stopPropagation(), options);
  }

  draw(lib, data, room) {
    this.take(data);
    this.lib = lib;
    const { layout } = this.figure;
    const [wide, high] = this.fit(data, room);
    const font = { ...layout.font, color: this.view.ink, family: this.view.family };
    Object.assign(layout, { width: wide, height: high, font });
    place(this.node, { width: wide, height: high });
    this.axes = axesOf(layout);
    this.react();
    if (!this.wired) this.wire();
    this.placed();
  }

  // Reads the figure of a feed, once.
  take(data) {
    if (this.taken === data) return;
    this.taken = data;
    this.figure = this.parse(data);
  }

  react() {
    this.lib.react(this.node, this.figure.traces, this.figure.layout, CONFIG);
  }

  // Width and height of the figure, in px.
  fit(data, [width]) {
    return [width, data.height || Math.min(width, data.largest)];
  }

  parse(data) {
    const { data: traces, layout, frames } = JSON.parse(data.figure);
    for (const axis of ["xaxis", "yaxis", "yaxis2"]) {
      if (layout[axis]) layout[axis] = { ...layout[axis], fixedrange: false };
    }
    layout.hoverlabel = { ...layout.hoverlabel, font: { size: 12 } };
    this.frames = Object.fromEntries((frames || []).map((frame) => [frame.name, frame]));
    return { traces, layout };
  }

  wire() {
    this.wired = true;
    const on = (event, action) => this.node.on(`plotly_${event}`, (given) => this.view.guard(() => action(given)));
    on("afterplot", () => this.placed());
    on("hover", ({ points }) => this.hovered(points[0]));
    on("unhover", () => this.view.hover(null));
    on("click", ({ points }) => this.live && this.clicked(points[0]));
  }

  // Plotly's own box, which holds everything laid over the plot.
  over(node) {
    const stack = this.node.querySelector(".svg-container");
    if (stack && node.parentNode !== stack) stack.append(node);
  }

  placed() {}
  hovered() {}
  clicked() {}

  leave() {
    if (this.wired) this.lib.purge(this.node);
  }
}

export class BarsCell extends PlotCell {
  draw(lib, data, room) {
    if (this.taken !== data) this.frame = null;
    this.take(data);
    this.merge();
    super.draw(lib, data, room);
  }

  row() {
    const at = this.view.inbox.position(this.data.follows);
    return this.data.spans ? holding(this.data.spans, at) : at;
  }

  update() {
    if (this.lib && this.merge()) this.react();
  }

  // The bars for the cursor, or for the row that stands for several.
  get wanted() {
    const { spans, joins, follows } = this.data;
    const rows = joins ? rowsOf(spans, this.view.inbox.chosen(follows)) : [];
    return rows.length ? this.one(rows) : this.frames[this.row()];
  }

  // The frame of several rows as one; the same as long as they are.
  one(rows) {
    const { together } = this.view.inbox.at.chosen;
    const name = `${together} ${rows}`;
    if (this.last?.name === name && this.last.of === this.frames) return this.last;
    const values = rows.map((row) => [...decode(this.frames[row].data[0].y)]);
    const cells = { values: values.flat(), columns: values[0].length, channels: 1 };
    const y = joined(cells, [...rows.keys()], together);
    const sum = y.reduce((total, weight) => total + weight, 0);
    const layout = { title: { text: `${together} of ${rows.length} rows: Σ = ${sum.toFixed(2)}` } };
    this.last = { name, of: this.frames, data: [{ y }], layout, top: Math.max(1, ...y) };
    return this.last;
  }

  // Takes the bars that are wanted, and returns whether they changed.
  merge() {
    const frame = this.wanted;
    if (!frame || this.frame === frame) return false;
    this.frame = frame;
    const { traces, layout } = this.figure;
    const { title } = frame.layout || {};
    if (title) layout.title = { ...layout.title, ...title };
    if (this.data.joins) layout.yaxis = { ...layout.yaxis, ...upTo(frame.top ?? 1) };
    traces[0] = { ...traces[0], ...frame.data[0] };
    return true;
  }
}

// An axis of shares from 0 to 1, or of sums that are larger.
function upTo(top) {
  const tickvals = top > 1 ? Array.from({ length: Math.floor(top) + 1 }, (_, i) => i) : [0, 0.5, 1];
  return { range: [0, top], tickvals };
}

export class TilesCell extends PlotCell {
  clicked(point) {
    if (point.customdata) this.view.outbox.tell({ head: [this.drawn.picks, ...point.customdata] });
  }
}

// The whole matrix, pooled, with a frame around the part that is drawn in full; a click moves the cursor.
export class WholeCell extends PlotCell {
  constructor(view, name) {
    super(view, name);
    this.frame = element("div", "lv-window");
  }

  fit(data, [width]) {
    const side = Math.min(width, data.largest);
    return [side, side];
  }

  placed() {
    const part = this.view.inbox.current(this.view.inbox.spec.focus);
    if (!this.axes || !part || !this.drawn) return;
    const { across, down } = this.axes;
    const columns = shownPart(this.drawn.spans.columns, part.spans.columns);
    const rows = shownPart(this.drawn.spans.rows, part.spans.rows);
    const { left, top, width, height } = box(this.axes, columns, rows);
    place(this.frame, { left: across.offset + left, top: down.offset + top, width, height });
    this.over(this.frame);
  }

  update() {
    this.placed();
  }

  clicked(point) {
    const { spans } = this.drawn;
    this.view.outbox.pick(this.drawn, spanAt(spans.rows, point.y), spanAt(spans.columns, point.x));
  }
}
