// One head as a map, drawn by plotly.js; the cursor and the pointer move boxes that lie over it.

import { Band } from "./band.js";
import { Head } from "./cell.js";
import { element, place } from "./dom.js";
import { fitted, thinned, titleFor } from "./fit.js";
import { along, box, scrolled, within } from "./frame.js";
import { PlotCell } from "./plots.js";
import { reached } from "./spans.js";
import { look as usual } from "./stage.js";
import { plain } from "./text.js";
import { runs } from "./together.js";
import { decode } from "./values.js";

const TITLE_FONT = 12;
const TITLE_EDGE = 1;
const AXES = ["xaxis", "yaxis", "yaxis2"];
const pen = document.createElement("canvas").getContext("2d");

// Of a file: px of a side, the least width for the text below, the size and the height of a line of it, and its edge.
const FILE = { side: 760, least: 320, size: 11, line: 15, edge: 8 };

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
    this.parts = hiddenBoxes(PARTS, (part) => `lv-${part}`);
    this.sheet = element("div", "lv-sheet", Object.values(this.parts));
    this.overlay = element("div", "lv-overlay", this.sheet);
    this.pins = hiddenBoxes(PINS, (side) => `lv-pin lv-pin-${side}`, { "aria-hidden": "true" });
    this.body.prepend(...Object.values(this.pins));
    this.band = new Band();
    this.body.append(this.band.root);
    this.boxes = [];
  }

  // Fits margins, labels and titles to the room, and returns the size of the figure.
  fit(data, room) {
    const found = this.fitting(data, room);
    const { layout } = this.figure;
    this.scrolls = found.scrolls;
    this.cell = found.cell;
    layout.margin = { ...found.margin, autoexpand: false };
    for (const [name, { tickvals, ticktext }] of Object.entries(this.ticks)) {
      const labels = { tickvals: thinned(tickvals, found.every), ticktext: thinned(ticktext, found.every) };
      layout[name] = { ...layout[name], ...labels, tickfont: { size: found.font }, ticklabeloverflow: "allow" };
    }
    layout.annotations = this.titles(found, data);
    return found.size;
  }

  // How large the map will be in a room, [width, height] in px; without a height, the map is at most `largest` px.
  fitting({ names, largest }, [width, height]) {
    const side = Math.min(width, largest);
    const room = height ? [width, height] : [side, side];
    const widest = { rows: this.widest("yaxis"), columns: this.widest("xaxis") };
    const [rows, columns, right] = [names.rows.length, names.columns.length, this.right];
    return fitted({ rows, columns, widest, room, right, ...this.look });
  }

  // The fonts and cells that the map may have.
  get look() {
    const { presenting, stage } = this.view;
    return presenting.on ? usual(14, presenting.factor) : (stage?.look(this.name) ?? usual());
  }

  // How large the map would be in a room; null as long as there is no map.
  measured(room) {
    const { data } = this;
    if (!data) return null;
    this.take(data);
    return this.fitting(data, room);
  }

  // The widest label, in multiples of the font size. Small letters are a little wider than large ones.
  widest(axis) {
    const { ticktext } = this.ticks[axis];
    const widths = ticktext.flatMap((text) => [8, 14].map((size) => this.textWidth(plain(text), size) / size));
    return 1.03 * Math.max(0, ...widths);
  }

  get fileName() {
    const { trace, kind, head } = this.data;
    return `${trace}-${kind}-${head[0] + 1}.${head[1] + 1}`.replace(/[^\p{L}\p{N}.-]+/gu, "_");
  }

  // The figure of a picture: as large as its labels need, on white, and under it what it shows.
  forFile() {
    const { data } = this;
    const made = new FileMap(this.view, this.name);
    made.take(data);
    const [wide, high] = made.fit(data, [FILE.side, FILE.side]);
    const { layout, traces } = made.figure;
    const width = Math.ceil(Math.max(wide, FILE.least));
    const caption = [data.caption.replace("{step}", ""), data.off && "switched off", data.badge?.text];
    const lines = this.lines(caption.filter(Boolean).join(" · "), width - 2 * FILE.edge);
    const margin = { ...layout.margin, r: layout.margin.r + width - wide };
    margin.b += FILE.edge + FILE.line * lines.length;
    const height = Math.ceil(high + margin.b - layout.margin.b);
    const corner = { xref: "paper", yref: "paper", x: 0, y: 0, xanchor: "left", yanchor: "top" };
    const below = lines.map((line, i) => {
      const at = { ...corner, xshift: FILE.edge - margin.l, yshift: -FILE.edge - FILE.line * i };
      return { ...at, text: line.replaceAll("&", "&amp;"), font: { size: FILE.size } };
    });
    const font = { ...layout.font, color: "#1d232c", family: this.view.family };
    const look = { width, height, margin, font, paper_bgcolor: "#ffffff" };
    return { data: traces, layout: { ...layout, ...look, annotations: [...layout.annotations, ...below] } };
  }

  // A text of parts between dots as lines of at most `room` px.
  lines(text, room) {
    const found = [];
    for (const part of text.split(" · ")) {
      const longer = found.length ? `${found.at(-1)} · ${part}` : part;
      if (found.length && this.textWidth(longer, FILE.size) <= room) found[found.length - 1] = longer;
      else found.push(part);
    }
    return found;
  }

  textWidth(text, size) {
    pen.font = `${size}px ${this.view.family}`;
    return pen.measureText(text).width;
  }

  // The axis titles, each in the room beside its axis; a title longer than the map starts before the map.
  titles({ margin, cell }, { names }) {
    const room = [margin.l + cell * names.columns.length, margin.t + cell * names.rows.length];
    const { factor } = this.look;
    return this.named.map((annotation, i) => {
      if (i > 1) return annotation;
      const size = TITLE_FONT * factor;
      const text = titleFor(annotation.text, room[i], (each) => this.textWidth(each, size));
      const [before, beside] = i ? [margin.t, margin.l] : [margin.l, margin.t];
      const over = Math.max(0, this.textWidth(text, size) - room[i] + before);
      const edge = beside - TITLE_EDGE;
      const shift = i ? { xshift: -edge, yshift: over } : { xshift: -over, yshift: edge };
      return { ...annotation, text, font: { size }, ...shift };
    });
  }

  parse(data) {
    const figure = super.parse(data);
    const { annotations, margin, ...axes } = figure.layout;
    this.named = annotations;
    this.right = margin.r;
    this.ticks = Object.fromEntries(AXES.filter((name) => axes[name]).map((name) => [name, axes[name]]));
    const [map] = figure.traces;
    const { rows, columns } = data.names;
    const open = decode(map.z);
    this.open = open;
    this.values = decode(map.customdata);
    this.channels = this.values.length / (rows.length * columns.length);
    const { hover, spans } = data;
    const later = (i, j) => spans.columns[j][0] > spans.rows[i][0];
    const note = (i, j) => (open[i * columns.length + j] ? "" : later(i, j) ? hover.later : hover.masked);
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
    this.body.classList.toggle("lv-tiny", this.cell < 8);
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
    for (const pin of [rows, columns, corner]) place(pin, { ...named, "font-size": xaxis.tickfont.size });
  }

  set(values) {
    for (const [name, value] of Object.entries(values)) this.sheet.style.setProperty(`--${name}`, value);
  }

  update(data) {
    const [row, column] = [this.row(), this.column()];
    const { rows, columns } = this.several;
    const last = row < 0 ? reached(data.spans.rows, this.view.inbox.position(data.rows)) : row;
    this.set({ row: last, column: Math.max(column, 0), last: Math.max(last, ...rows) });
    this.parts.row.hidden = row < 0 || rows.length > 0;
    this.parts.column.hidden = row < 0 || column < 0 || rows.length + columns.length > 0;
    this.box(rows, columns);
    this.join(data);
    this.parts.fade.hidden = !data.fade;
    if (this.scrolls && row >= 0) this.reveal(row, column);
  }

  // Frames around the rows, and around the columns, that are looked at as one.
  box(rows, columns) {
    if (!this.boxes.length && !rows.length && !columns.length) return;
    for (const node of this.boxes) node.remove();
    this.boxes = [...framed("row", rows), ...framed("whole-column", columns)];
    this.sheet.append(...this.boxes);
  }

  // The row that stands for several, under the map.
  join(data) {
    if (!this.axes) return;
    const { names, quantity, scale, silent } = data;
    const look = { across: this.axes.across, cell: this.cell, scale, names: names.columns, quantity, silent };
    this.band.show(silent ? null : this.one(), look);
  }

  sees(row, column) {
    return this.open[row * this.data.names.columns.length + column] > 0;
  }

  // Scrolls to the row and, if there is one, to the column of the cursor.
  reveal(row, column) {
    if (!this.axes) return;
    const { across, down } = this.axes;
    const frame = this.body;
    const high = frame.clientHeight - down.offset - this.cell;
    frame.scrollTop = scrolled(along(down, row), frame.scrollTop, high);
    if (column < 0) return;
    const wide = frame.clientWidth - across.offset - this.cell;
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

// The map of a file, whose fonts do not follow the window.
class FileMap extends MapCell {
  get look() {
    return usual(14);
  }
}

// A box around each run of rows or of columns.
function framed(name, places) {
  return runs(places).map(([first, count]) => {
    const node = element("div", `lv-${name} lv-several`);
    node.style.setProperty("--first", first);
    node.style.setProperty("--count", count);
    return node;
  });
}

// The labels of an axis, at the places where Plotly draws them.
function pinned({ tickvals, ticktext }, axis) {
  const labels = tickvals.map((value, i) => {
    const node = element("span", "", plain(ticktext[i]));
    place(node, { "--at": within(axis, value) });
    return node;
  });
  return element("div", "", labels);
}

