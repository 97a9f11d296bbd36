// @ts-check
// The signs of the view, drawn, so that none of them needs a font.

import { shape } from "./dom.js";

const LINES = {
  inside: "M11 3.4c-2.3-.8-3.4.2-3.7 2.2L6 12.4c-.3 1.7-1.4 2.4-3 1.9M4.4 7.2h5.4",
  off: "M8 1.8v6M4.7 4a5.2 5.2 0 1 0 6.6 0",
  save: "M8 2v7.5M4.8 6.6L8 9.8l3.2-3.2M3 13.2h10",
  leave: "M4 4l8 8M12 4l-8 8",
  play: "M4.5 3l8 5-8 5z",
};
const FILLED = { stop: "M4 4h8v8H4z", back: "M11 3.2L4 8l7 4.8z", on: "M5 3.2L12 8l-7 4.8z" };

// A sign of 16 units of its own width, in the colour of the text.
export function icon(name) {
  const filled = name in FILLED;
  const ink = filled ? { fill: "currentColor" } : { fill: "none", stroke: "currentColor", "stroke-width": "1.4" };
  const path = shape("path", { d: FILLED[name] ?? LINES[name], ...ink });
  return shape("svg", { viewBox: "0 0 16 16", class: "lv-icon", "aria-hidden": "true" }, path);
}

// Fills a button with a sign and a text beside it.
export const sign = (button, name, text) => button.replaceChildren(...(name ? [icon(name)] : []), text);
