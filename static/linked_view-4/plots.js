// The cells that plotly.js draws: map, bars, tiles, whole matrix.

import { Cell, Head } from "./cell.js";
import { element, place } from "./dom.js";
import { SMALLEST_CELL, along, axesOf, box, mapSize, scrolled, shownPart, spanAt, within } from "./frame.js";
import { holding, reached } from "./spans.js";
import { plain } from "./text.js";
import { decode } from "./values.js";

const CONFIG = { displayModeBar: false, doubleClick: false, responsive: false };

class PlotCell extends Cell {
  constructor(view, name) {
    super(view, name);
    this.node = element("div", "lv-plot");
    this.body.classList.add("lv-scroll");
    this.body.append(this.node);
    const options = { capture: true, passive: true };
    this.root.addEventListener("touchstart", (event) => event.stopPropagation(), options);
  }

  draw(lib, data, width, fresh) {
    if (fresh || !this.figure) this.figure = this.parse(data);
    this.lib = lib;
    const { layout } = this.figure;
    const [wide, high] = this.size(data, width);
    const font = { ...layout.font, color: this.view.ink, family: this.view.family };
    Object.assign(layout, { width: wide, height: high, font });
    place(this.node, { width: wide, height: high });
    this.axes = axesOf(layout);
    this.react();
    if (!this.wired) this.wire();
    this.placed();
  }

  react() {
    this.lib.react(this.node, this.figure.traces, this.figure.layout, CONFIG);
  }

  size(data, width) {
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
    on("click", ({ points }) => this.clicked(points[0]));
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

const PARTS = ["fade", "across", "down", "row", "column", "hover"];
const PINS = ["rows", "columns", "corner"];

function hiddenBoxes(names, look, attributes) {
  return Object.fromEntries(
    names.map((name) => [name, element("div", look(name), undefined, { hidden: "", ...attributes })]),
  );
}

export class MapCell extends Head(PlotCell) {
  constructor(view, name) {
    super(view, name);
    this.overlay = element("div", "lv-overlay");
    this.sheet = element("div", "lv-sheet");
    this.parts = hiddenBoxes(PARTS, (part) => `lv-${part}`);
    this.sheet.append(...Object.values(this.parts));
    this.overlay.append(this.sheet);
    this.pins = hiddenBoxes(PINS, (side) => `lv-pin lv-pin-${side}`, { "aria-hidden": "true" });
    this.body.prepend(...Object.values(this.pins));
  }

  size({ names, largest }, width) {
    const side = Math.min(width, largest);
    const { scrolls, size } = mapSize(this.figure.layout.margin, names.rows.length, names.columns.length, side);
    this.scrolls = scrolls;
    return size;
  }

  parse(data) {
    const figure = super.parse(data);
    const [map] = figure.traces;
    const { rows, columns } = data.names;
    const open = decode(map.z);
    this.values = decode(map.customdata);
    this.channels = this.values.length / (rows.length * columns.length);
    const note = (i, j) => (open[i * columns.length + j] ? "" : data.hover.masked);
    const { hover } = data;
    map.text = hover.rows.map((row, i) => hover.columns.map((column, j) => `${row}, ${column}${note(i, j)}`));
    return figure;
  }

  // Lays the overlay sheet over the cells; CSS variables place its parts on their rows and columns.
  placed() {
    if (!this.drawn || !this.axes) return;
    const { across, down } = this.axes;
    const [rows, columns] = [this.drawn.names.rows.length, this.drawn.names.columns.length];
    place(this.overlay, { left: across.offset, top: down.offset, width: across.length, height: down.length });
    place(this.sheet, box(this.axes, [-0.5, columns - 0.5], [-0.5, rows - 0.5]));
    this.set({ rows, columns });
    this.over(this.overlay);
    this.pin();
  }

  // Labels that stay in place while the map scrolls under them.
  pin() {
    const { rows, columns, corner } = this.pins;
    for (const pin of [rows, columns, corner]) pin.hidden = !this.scrolls;
    this.body.classList.toggle("lv-scrolls", this.scrolls);
    if (!this.scrolls) return;
    const { xaxis, yaxis, width, height } = this.figure.layout;
    rows.replaceChildren(pinned(yaxis, this.axes.down));
    columns.replaceChildren(pinned(xaxis, this.axes.across));
    corner.replaceChildren(element("div"));
    const sizes = { width, height, left: this.axes.across.offset, top: this.axes.down.offset };
    const named = Object.fromEntries(Object.entries(sizes).map(([name, value]) => [`--${name}`, value]));
    for (const pin of [rows, columns, corner]) place(pin, named);
  }

  set(values) {
    for (const [name, value] of Object.entries(values)) this.sheet.style.setProperty(`--${name}`, value);
  }

  update(data) {
    const [row, column] = [this.row(), this.column()];
    const last = row < 0 ? reached(data.spans.rows, this.view.position(data.rows)) : row;
    this.set({ row: last, column: Math.max(column, 0) });
    this.parts.row.hidden = row < 0;
    this.parts.column.hidden = row < 0 || column < 0;
    this.parts.fade.hidden = !data.fade;
    if (this.scrolls && row >= 0) this.reveal(row, column);
  }

  // Scrolls to the row and, if there is one, to the column of the cursor.
  reveal(row, column) {
    if (!this.axes) return;
    const { across, down } = this.axes;
    const frame = this.body;
    const high = frame.clientHeight - down.offset - SMALLEST_CELL;
    frame.scrollTop = scrolled(along(down, row), frame.scrollTop, high);
    if (column < 0) return;
    const wide = frame.clientWidth - across.offset - SMALLEST_CELL;
    frame.scrollLeft = scrolled(along(across, column), frame.scrollLeft, wide);
  }

  hovered(point) {
    if (point.curveNumber === 0) this.hover(point.y, point.x);
  }

  clicked(point) {
    if (point.curveNumber === 0) this.pick(point.y, point.x);
  }

  // Draws a cross in the figure under the pointer, and a ring on the same tokens in other figures.
  ring(places, own) {
    const { row, column } = this.marked(places, own);
    this.set({ "hover-row": Math.max(row, 0), "hover-column": Math.max(column, 0) });
    const { across, down, hover } = this.parts;
    across.hidden = down.hidden = !own || row < 0 || column < 0;
    hover.hidden = own || (row < 0 && column < 0);
    hover.classList.toggle("lv-whole-row", column < 0);
    hover.classList.toggle("lv-whole-column", row < 0);
  }
}

// The labels of an axis, at the places where Plotly draws them.
function pinned({ tickvals, ticktext }, axis) {
  const line = element("div");
  for (const [i, value] of tickvals.entries()) {
    const node = element("span", "", plain(ticktext[i]));
    place(node, { "--at": within(axis, value) });
    line.append(node);
  }
  return line;
}

export class BarsCell extends PlotCell {
  draw(lib, data, width, fresh) {
    if (fresh) this.frame = null;
    if (fresh || !this.figure) this.figure = this.parse(data);
    this.merge(data);
    super.draw(lib, data, width, false);
    this.write();
  }

  row() {
    return this.index(this.data);
  }

  index(data) {
    const at = this.view.position(data.follows);
    return data.spans ? holding(data.spans, at) : at;
  }

  update(data) {
    if (!this.lib || !this.merge(data)) return;
    this.react();
    this.write();
  }

  // Takes the bars for the cursor, and returns whether they changed.
  merge(data) {
    const frame = this.frames[this.index(data)];
    if (!frame || this.frame === frame) return false;
    this.frame = frame;
    const { traces, layout } = this.figure;
    const { yaxis, title } = frame.layout || {};
    layout.yaxis = { ...layout.yaxis, ...yaxis };
    if (title) layout.title = { ...layout.title, ...title };
    const { text, ...bars } = { ...traces[0], ...frame.data[0] };
    traces[0] = bars;
    this.texts = text || [];
    return true;
  }

  // Draws the numbers at the ends of the bars, because Plotly would measure each of them at every step.
  write() {
    const shares = decode(this.figure.traces[0].x);
    const { across, down } = this.axes;
    this.ends ??= element("div", "lv-ends");
    const written = this.texts.map((text, i) => {
      const node = element("span", "", plain(text));
      place(node, { left: within(across, shares[i]) + 4, top: within(down, i) });
      return node;
    });
    this.ends.replaceChildren(...written);
    this.over(this.ends);
  }
}

export class TilesCell extends PlotCell {
  clicked(point) {
    if (point.customdata) this.view.tell({ head: [this.drawn.picks, ...point.customdata] });
  }
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
    const part = this.view.current(this.view.spec.focus);
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
    this.view.pick(this.drawn, spanAt(spans.rows, point.y), spanAt(spans.columns, point.x));
  }
}
