// Draws the figures of a page on a canvas, from the values that Python wrote for plotly.js: cells, hatched areas,
// lines, numbers and frames. Labels lie over the canvas as HTML. A page of figures is drawn anew in one frame.

import { element, place } from "../linked_view/dom.js";
import { axesOf } from "./axes.js";
import { colours, parts } from "./colour.js";
import { said } from "./hover.js";
import { label } from "./rich.js";
import { decode } from "../linked_view/values.js";

// From so many cells on, one picture is quicker than a rectangle for each.
const MANY = 2500;
// Pixels of the largest canvas that every browser draws.
const LARGEST = 2 ** 24;
const MODES = new Set(["lines", "text", undefined]);

// Whether these traces can be drawn here: others, such as curves with a legend, are left to plotly.js.
export function canDraw(traces) {
  return traces.every(({ type, mode, name }) => type === "heatmap" || (type === "scatter" && MODES.has(mode) && !name));
}

// Pixels for each px of a picture: as many as asked for, unless no canvas holds them.
export const scaleOf = (width, height, asked) => Math.min(asked, Math.sqrt(LARGEST / (width * height)));

export class Canvas {
  constructor(node) {
    this.canvas = element("canvas", "pic-canvas");
    this.labels = element("div", "pic-labels", undefined, { "aria-hidden": "true" });
    this.names = element("div", "pic-names", undefined, { "aria-hidden": "true" });
    this.tip = element("div", "pic-tip", undefined, { hidden: "", role: "status" });
    node.replaceChildren(this.names, this.canvas, this.labels, this.tip);
    node.addEventListener("pointermove", (event) => this.point(event));
    node.addEventListener("pointerdown", (event) => this.point(event));
    node.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.node = node;
  }

  draw(traces, layout) {
    Object.assign(this, { traces: traces.map(opened), layout });
    this.axes = axesOf(this.traces, layout);
    this.paint();
    this.write();
    if (!this.tip.hidden) this.point(this.pointed); // what is under a pointer that rests
  }

  paint() {
    const { width, height, font } = this.layout;
    const scale = scaleOf(width, height, window.devicePixelRatio || 1);
    Object.assign(this.canvas, { width: Math.round(width * scale), height: Math.round(height * scale) });
    place(this.canvas, { width, height });
    paint({ pen: this.canvas.getContext("2d"), scale, font }, this.traces, this.layout, this.axes);
  }

  axesFor(trace) {
    return axesFor(this.axes, trace);
  }

  // --- labels ------------------------------------------------------------------------------------------------

  // Labels are HTML over the canvas; they are made again only if they changed. The names of the lines have a place of
  // their own, because they stay when a wide figure scrolls.
  write() {
    const { annotations = [], margin, height } = this.layout;
    const told = JSON.stringify([this.layout.width, this.axes.said, annotations]);
    if (told === this.told) return;
    this.told = told;
    const ticks = Object.values(this.axes.all).flatMap((axis) => axis.labels());
    const isName = ({ axis }) => axis === "y" && !this.axes.y2;
    const rest = ticks.filter((each) => !isName(each)).map(tick);
    this.labels.replaceChildren(...rest, ...annotations.map((each) => this.annotation(each)));
    const sheet = element("div", "pic-sheet", ticks.filter(isName).map(tick));
    place(sheet, { width: margin.l, height });
    this.names.replaceChildren(sheet);
  }

  annotation({ text, font, bgcolor, bordercolor, textangle, ...where }) {
    const content = textangle === -90 ? element("span", "pic-upwards", label(text)) : label(text);
    const node = element("span", `pic-note ${anchors(where)}`, content);
    place(node, { ...spot(where, this.layout, this.axes), "font-size": font.size });
    if (bgcolor) Object.assign(node.style, { background: bgcolor, borderColor: bordercolor });
    node.classList.toggle("pic-box", Boolean(bgcolor));
    return node;
  }

  // --- the pointer -------------------------------------------------------------------------------------------

  point(event) {
    this.pointed = event;
    const box = this.node.getBoundingClientRect();
    const [left, top] = [event.clientX - box.left, event.clientY - box.top];
    const text = this.under(left, top);
    this.tip.hidden = text === null;
    if (text === null) return;
    this.tip.replaceChildren(label(text));
    const { offsetWidth: wide, offsetHeight: high } = this.tip;
    const below = top + 16 + high <= this.node.clientHeight;
    const beside = Math.max(0, Math.min(left + 12, this.node.clientWidth - wide));
    place(this.tip, { left: beside, top: below ? top + 16 : Math.max(0, top - 10 - high) });
  }

  // What is said of the place under the pointer; null if there is nothing.
  under(left, top) {
    const { trace, row, column, text } = this.hit(left, top) ?? {};
    if (!trace) return null;
    return text ?? said(trace, row, column, this.axesFor(trace));
  }

  // The cell or the target at a place in px, with the number of its trace, as plotly.js counts them; null if none.
  hit(left, top) {
    for (const [curveNumber, trace] of this.traces.entries()) {
      if (trace.hoverinfo === "skip") continue;
      const { x, y } = this.axesFor(trace);
      const found = trace.mode === "markers" ? target(trace, x, y, left, top) : cell(trace, x, y, left, top);
      if (found) return { trace, curveNumber, ...found };
    }
    return null;
  }
}

function cell(trace, x, y, left, top) {
  if (trace.type !== "heatmap") return null;
  const column = index(x.from(left), trace.x0, trace.dx, trace.columns);
  const row = index(y.from(top), trace.y0, trace.dy, trace.rows);
  if (column === null || row === null || Number.isNaN(trace.values[row * trace.columns + column])) return null;
  return { row, column };
}

// The nearest of the targets that reach to a place.
function target({ x: xs, y: ys, marker, hovertext, customdata }, x, y, left, top) {
  const away = xs.map((each, i) => Math.max(Math.abs(x.at(each) - left), Math.abs(y.at(ys[i]) - top)));
  const nearest = away.indexOf(Math.min(...away));
  if (nearest < 0 || away[nearest] > marker.size / 2) return null;
  return { text: hovertext[nearest], customdata: customdata[nearest] };
}

const anchors = ({ xanchor = "center", yanchor = "middle" }) => `pic-${xanchor} pic-${yanchor}`;

function index(value, start, step, count) {
  const found = Math.round((value - start) / step);
  return found >= 0 && found < count ? found : null;
}

// The place of an annotation in px: x and y are values, or shares of the drawing area.
export function spot({ x, y, xref, yref, xshift = 0, yshift = 0 }, { width, height, margin }, axes) {
  const [wide, high] = [width - margin.l - margin.r, height - margin.t - margin.b];
  const left = xref === "paper" ? margin.l + x * wide : axes.x.at(x);
  const top = yref === "paper" ? margin.t + (1 - y) * high : axes.y.at(y);
  return { left: left + xshift, top: top - yshift };
}

// A trace with its numbers read and its places filled in.
export function opened(trace) {
  if (trace.type !== "heatmap") return trace;
  const values = decode(trace.z);
  const [rows, columns] = trace.z.shape.split(",").map(Number);
  const custom = trace.customdata ? decode(trace.customdata) : null;
  return { x0: 0, dx: 1, y0: 0, dy: 1, xgap: 0, ygap: 0, ...trace, values, rows, columns, custom };
}

// --- what the traces draw -------------------------------------------------------------------------------------

const axesFor = (axes, { xaxis = "x", yaxis = "y" }) => ({ x: axes[xaxis], y: axes[yaxis] });

// Draws traces and frames with the pen of a canvas.
export function paint(tools, traces, { shapes = [] }, axes) {
  for (const shape of shapes) if (shape.fillcolor) rectangle(tools, shape, axes);
  for (const trace of traces) draw(tools, trace, axesFor(axes, trace));
  for (const shape of shapes) if (shape.line.width) rectangle(tools, shape, axes);
}

function draw(tools, trace, axes) {
  if (trace.type === "heatmap") cells(tools, trace, axes);
  else if (trace.mode === "text") numbers(tools, trace, axes);
  else if (trace.mode === "markers") return; // unseen targets of the pointer
  else if (trace.fill) hatch(tools, trace, axes);
  else line(tools, trace, axes);
}

function rectangle({ pen, scale }, { x0, x1, y0, y1, fillcolor, line: { width, color } }, { x, y }) {
  const box = [x.at(x0), y.at(y0), x.at(x1) - x.at(x0), y.at(y1) - y.at(y0)].map((each) => each * scale);
  if (fillcolor) {
    pen.fillStyle = fillcolor;
    pen.fillRect(...box);
  }
  if (!width) return;
  Object.assign(pen, { strokeStyle: color, lineWidth: width * scale });
  pen.strokeRect(...box);
}

function cells({ pen, scale }, trace, { x, y }) {
  const { values, rows, columns, x0, dx, y0, dy, zmin, zmax, xgap, ygap } = trace;
  if (rows * columns > MANY && !xgap && !ygap) return picture({ pen, scale }, trace, { x, y });
  const colour = colours(trace.colorscale);
  const edge = (axis, start, step, i) => Math.round(axis.at(start + (i - 0.5) * step) * scale);
  const across = Array.from({ length: columns + 1 }, (_, i) => edge(x, x0, dx, i));
  const down = Array.from({ length: rows + 1 }, (_, i) => edge(y, y0, dy, i));
  const [beside, below] = [xgap * scale, ygap * scale];
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const value = values[row * columns + column];
      if (Number.isNaN(value)) continue;
      pen.fillStyle = colour((value - zmin) / (zmax - zmin));
      const [left, top] = [across[column], Math.min(down[row], down[row + 1])];
      const high = Math.abs(down[row + 1] - down[row]);
      pen.fillRect(left + beside / 2, top + below / 2, across[column + 1] - left - beside, high - below);
    }
  }
}

// Many cells at once: a picture with a pixel for each, enlarged without smoothing.
function picture({ pen, scale }, { values, rows, columns, x0, dx, y0, dy, zmin, zmax, colorscale }, { x, y }) {
  const sheet = element("canvas", "", undefined, { width: columns, height: rows });
  const own = sheet.getContext("2d");
  const image = own.createImageData(columns, rows);
  const colour = colours(colorscale);
  const known = new Map();
  for (const [i, value] of values.entries()) {
    if (Number.isNaN(value)) continue;
    if (!known.has(value)) known.set(value, parts(colour((value - zmin) / (zmax - zmin))));
    const [red, green, blue, opacity] = known.get(value);
    image.data.set([red, green, blue, 255 * opacity], 4 * i);
  }
  own.putImageData(image, 0, 0);
  const edge = (axis, start, step, at) => Math.round(axis.at(start + (at - 0.5) * step) * scale);
  const [left, right] = [edge(x, x0, dx, 0), edge(x, x0, dx, columns)];
  const [top, bottom] = [edge(y, y0, dy, 0), edge(y, y0, dy, rows)];
  pen.save();
  pen.imageSmoothingEnabled = false;
  pen.translate(left, top);
  pen.scale((right - left) / columns, (bottom - top) / rows);
  pen.drawImage(sheet, 0, 0);
  pen.restore();
}

function numbers({ pen, scale, font }, { x: xs, y: ys, text, textfont }, { x, y }) {
  Object.assign(pen, { textAlign: "center", textBaseline: "middle", fillStyle: textfont.color ?? font.color });
  pen.font = `${textfont.size * scale}px ${font.family}`;
  for (const [i, each] of text.entries()) pen.fillText(each, x.at(xs[i]) * scale, y.at(ys[i]) * scale);
}

// Areas between nulls, filled with slanted lines.
function hatch({ pen, scale }, { x: xs, y: ys, fillpattern }, { x, y }) {
  pen.save();
  pen.beginPath();
  let fresh = true;
  for (const [i, each] of xs.entries()) {
    if (each === null) {
      pen.closePath();
      fresh = true;
      continue;
    }
    const at = [x.at(each) * scale, y.at(ys[i]) * scale];
    if (fresh) pen.moveTo(...at);
    else pen.lineTo(...at);
    fresh = false;
  }
  pen.clip();
  const { width, height } = pen.canvas;
  Object.assign(pen, { strokeStyle: fillpattern.fgcolor, lineWidth: 1.2 * scale });
  pen.beginPath();
  for (let start = -height; start < width; start += fillpattern.size * scale) {
    pen.moveTo(start, height);
    pen.lineTo(start + height, 0);
  }
  pen.stroke();
  pen.restore();
}

function line({ pen, scale }, { x: xs, y: ys, line: { width, color } }, { x, y }) {
  Object.assign(pen, { strokeStyle: color, lineWidth: width * scale });
  pen.beginPath();
  for (const [i, each] of xs.entries()) {
    const at = [x.at(each) * scale, y.at(ys[i]) * scale];
    if (i) pen.lineTo(...at);
    else pen.moveTo(...at);
  }
  pen.stroke();
}

function tick({ text, left, top, size, turned, axis, side }) {
  const node = element("span", `pic-tick pic-tick-${turned ? "turned" : side === "top" ? "above" : axis}`, label(text));
  place(node, { left, top, "font-size": size });
  return node;
}
