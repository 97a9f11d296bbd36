// A figure as a PNG file, drawn as on the screen.

import { element } from "../linked_view/dom.js";
import { plain } from "../linked_view/text.js";
import { axesOf } from "./axes.js";
import { opened, paint, scaleOf, spot } from "./canvas.js";

const KEPT = 60_000; // ms for which a browser can load a file that was made

// Labels of the axes and annotations: HTML on the screen, a part of the picture in a file.
function write({ pen, scale, font }, layout, axes) {
  const put = (text, { left, top }, size, [textAlign, textBaseline], turned) => {
    pen.save();
    pen.translate(left * scale, top * scale);
    if (turned) pen.rotate(-Math.PI / 2);
    const look = { textAlign, textBaseline, fillStyle: font.color, font: `${size * scale}px ${font.family}` };
    Object.assign(pen, look).fillText(plain(text), 0, 0);
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

// The address of a file with a figure, as plotly.js gives it.
export async function toImage({ data, layout }, { width, height, scale: asked }) {
  const scale = scaleOf(width, height, asked);
  const traces = data.map(opened);
  const axes = axesOf(traces, layout);
  const canvas = element("canvas", "", undefined, { width: width * scale, height: height * scale });
  const pen = canvas.getContext("2d");
  const tools = { pen, scale, font: layout.font };
  pen.fillStyle = layout.paper_bgcolor;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  paint(tools, traces, layout, axes);
  write(tools, layout, axes);
  const url = URL.createObjectURL(await new Promise((done) => canvas.toBlob(done)));
  setTimeout(() => URL.revokeObjectURL(url), KEPT);
  return url;
}
