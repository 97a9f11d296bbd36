// A figure as a file, PNG or SVG, drawn as on the screen: the pen of a canvas paints pixels, `Shapes` writes shapes.

import { element, shape } from "../linked_view-7/dom.js";
import { axesOf } from "./axes.js";
import { opened, paint, scaleOf, spot } from "./canvas.js";
import { parts } from "./colour.js";
import { unescaped } from "./rich.js";

const KEPT = 60_000; // ms for which a browser can load a file that was made
// How far below its place the baseline of a text lies, in multiples of the font size: not every program that opens SVG
// knows other baselines.
const BELOW = { middle: 0.35, top: 0.8, bottom: -0.2 };
const ANCHORS = { left: "start", center: "middle", right: "end" };
// What XML cannot hold.
const UNHELD = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

// The calls of a canvas that figures make, as shapes of an SVG; colours and opacities apart, as older programs want it.
class Shapes {
  constructor({ width, height, font }, title) {
    const xmlns = "http://www.w3.org/2000/svg";
    this.root = shape("svg", { xmlns, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": font.family });
    Object.assign(this, { canvas: { width, height }, clips: 0, path: "", now: { turn: "" }, before: [] });
    this.add("title", {}).textContent = title.replace(UNHELD, "\ufffd");
  }

  add(tag, attributes, within = this.root) {
    const { clip, turn } = this.now;
    const where = { ...(clip && { "clip-path": `url(#${clip})` }), ...(turn && { transform: turn }) };
    const node = shape(tag, { ...attributes, ...where });
    within.append(node);
    return node;
  }

  get stroked() {
    const [red, green, blue, opacity] = parts(this.strokeStyle);
    const stroke = { stroke: `rgb(${red},${green},${blue})`, "stroke-opacity": opacity };
    return { fill: "none", ...stroke, "stroke-width": this.lineWidth };
  }

  get filled() {
    const [red, green, blue, opacity] = parts(this.fillStyle);
    return { fill: `rgb(${red},${green},${blue})`, "fill-opacity": opacity };
  }

  fillRect(x, y, width, height) {
    const { filled } = this;
    if (filled["fill-opacity"]) this.add("rect", { x, y, width, height, ...filled, "shape-rendering": "crispEdges" });
  }

  strokeRect(x, y, width, height) {
    this.beginPath();
    this.path = `M${x} ${y}h${width}v${height}h${-width}z`;
    this.stroke();
  }

  beginPath() {
    this.path = "";
  }

  moveTo(x, y) {
    this.path += `M${x} ${y}`;
  }

  lineTo(x, y) {
    this.path += `L${x} ${y}`;
  }

  closePath() {
    this.path += "z";
  }

  stroke() {
    this.add("path", { d: this.path, ...this.stroked });
  }

  clip() {
    const id = `clip${(this.clips += 1)}`;
    this.add("path", { d: this.path }, this.add("clipPath", { id }));
    this.now = { ...this.now, clip: id };
  }

  translate(x, y) {
    this.now = { ...this.now, turn: `${this.now.turn}translate(${x} ${y})` };
  }

  rotate(angle) {
    this.now = { ...this.now, turn: `${this.now.turn}rotate(${(angle * 180) / Math.PI})` };
  }

  save() {
    this.before.push(this.now);
  }

  restore() {
    this.now = this.before.pop();
  }

  fillText(text, x, y) {
    const size = parseFloat(this.font);
    const look = { x, y: y + BELOW[this.textBaseline] * size, "font-size": size, ...this.filled };
    this.add("text", { ...look, "text-anchor": ANCHORS[this.textAlign] }).textContent = text.replace(UNHELD, "\ufffd");
  }
}

// Labels of the axes and annotations: HTML on the screen, a part of the picture in a file.
function write({ pen, scale, font }, layout, axes) {
  const put = (text, { left, top }, size, [textAlign, textBaseline], turned) => {
    pen.save();
    pen.translate(left * scale, top * scale);
    if (turned) pen.rotate(-Math.PI / 2);
    const look = { textAlign, textBaseline, fillStyle: font.color, font: `${size * scale}px ${font.family}` };
    Object.assign(pen, look).fillText(unescaped(text), 0, 0);
    pen.restore();
  };
  for (const each of Object.values(axes.all).flatMap((axis) => axis.labels())) {
    const beside = each.axis === "y" ? ["right", "middle"] : ["center", each.side === "top" ? "bottom" : "top"];
    put(each.text, each, each.size, each.turned ? ["left", "middle"] : beside, each.turned);
  }
  for (const each of layout.annotations ?? []) {
    const { text, font: own, textangle, xanchor = "center", yanchor = "middle" } = each;
    const turned = textangle === -90; // its end is then where it would start
    put(text, spot(each, layout, axes), own.size, turned ? ["right", yanchor] : [xanchor, yanchor], turned);
  }
}

// The address of a file with a figure, as plotly.js gives it: `format` is png or svg.
export async function toImage({ data, layout }, { format, width, height, scale: asked }) {
  const scale = scaleOf(width, height, asked);
  const traces = data.map(opened);
  const axes = axesOf(traces, layout);
  const canvas = element("canvas", "", undefined, { width: width * scale, height: height * scale });
  const pen = format === "svg" ? new Shapes(layout, layout.meta) : canvas.getContext("2d");
  const tools = { pen, scale, font: layout.font };
  pen.fillStyle = layout.paper_bgcolor;
  pen.fillRect(0, 0, width * scale, height * scale);
  paint(tools, traces, layout, axes);
  write(tools, layout, axes);
  const file =
    format === "svg"
      ? new Blob([new XMLSerializer().serializeToString(pen.root)], { type: "image/svg+xml" })
      : await new Promise((done) => canvas.toBlob(done));
  const url = URL.createObjectURL(file);
  setTimeout(() => URL.revokeObjectURL(url), KEPT);
  return url;
}
