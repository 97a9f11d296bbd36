// @ts-check
// Places in a figure, in px. Pure functions.
//
// Python fixes size, margins and ranges of every figure, and no axis grows for its labels (`automargin`), so every
// place in plotly.js's drawing follows from the layout.

import { clamp } from "./cursor.js";
import { holding, whole } from "./spans.js";

// Both axes of a layout: the start of each in the figure, its length, and the values at its two ends.
export function axesOf({ width, height, margin, xaxis, yaxis }) {
  const [left, right] = xaxis.range;
  const [bottom, top] = yaxis.range;
  const across = { offset: margin.l, length: width - margin.l - margin.r, first: left, last: right };
  const down = { offset: margin.t, length: height - margin.t - margin.b, first: top, last: bottom };
  if (yaxis.scaleanchor) makeSquare(across, down);
  return { across, down };
}

// Axes with equal units (`scaleanchor`): the axis with too much room shrinks, towards the left or the top.
export function makeSquare(...axes) {
  const unit = Math.min(...axes.map((axis) => axis.length / span(axis)));
  for (const axis of axes) axis.length = unit * span(axis);
}

const span = ({ first, last }) => Math.abs(last - first);

// Px from the start of an axis to a value.
export const along = ({ first, last, length }, value) => ((value - first) / (last - first)) * length;

// Px from the edge of the figure to a value.
export const within = (axis, value) => axis.offset + along(axis, value);

// The box between two values on each axis, measured from the starts of the axes.
/** @type {(axes: any, columns: number[], rows: number[]) => any} */
export function box({ across, down }, [left, right], [top, bottom]) {
  const [x, y] = [along(across, left), along(down, top)];
  return { left: x, top: y, width: along(across, right) - x, height: along(down, bottom) - y };
}

// How far to scroll a frame to show a place: not at all if the place is visible, else until it is in the middle.
export function scrolled(place, from, size) {
  return place < from || place > from + size ? Math.max(place - size / 2, 0) : from;
}

// The line nearest to a height, or null if none is within `reach` px; the first of two equally near. Lines run from
// height y1 to height y2, and `share` says how far along the lines to measure.
export function nearestLine(lines, share, y, reach) {
  const away = ({ y1, y2 }) => Math.abs(y1 + share * (y2 - y1) - y);
  const near = lines.filter((line) => away(line) < reach);
  return near.reduce((best, each) => (best && away(best) <= away(each) ? best : each), null);
}

// Start and end of the spans of a part, on an axis that counts all spans from 1.
export function shownPart(all, part) {
  const [start, stop] = whole(part);
  return [holding(all, start) + 0.5, holding(all, stop - 1) + 1.5];
}

// The span nearest to a place on an axis that counts all spans from 1.
export const spanAt = (all, at) => all[clamp(Math.round(at) - 1, 0, all.length - 1)];
