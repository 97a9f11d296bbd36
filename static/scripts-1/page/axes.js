// The axes of a figure, from the values that Python wrote for plotly.js. Pure functions and plain values.

import { makeSquare, within } from "../linked_view/frame.js";

const NICE = [1, 2, 5, 10];

// Round numbers within a range, at most `most` of them.
export function roundTicks([first, last], most) {
  const [low, high] = [Math.min(first, last), Math.max(first, last)];
  const rough = (high - low) / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, power * NICE.find((each) => each * power >= rough));
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
  return found.filter((at) => at !== 0 || low < 0);
}

// The range of an axis: its own, or the one that its cells fill.
function rangeOf(axis, traces, letter, id) {
  if (axis.range) return axis.range;
  const own = traces.filter((trace) => trace.type === "heatmap" && (trace[`${letter}axis`] ?? letter) === id);
  const [start, step, count] = letter === "x" ? ["x0", "dx", "columns"] : ["y0", "dy", "rows"];
  const low = Math.min(...own.map((trace) => trace[start] - trace[step] / 2));
  const high = Math.max(...own.map((trace) => trace[start] + (trace[count] - 0.5) * trace[step]));
  return axis.autorange === "reversed" ? [high, low] : [low, high];
}

class Axis {
  // A vertical axis runs upwards, so that it begins in px with the last end of its range.
  constructor(id, axis, range, [offset, length]) {
    const [first, last] = id[0] === "x" ? range : range.toReversed();
    Object.assign(this, { id, letter: id[0], axis, first, last, offset, length });
    this.side = axis.side ?? (this.letter === "x" ? "bottom" : "left");
  }

  // Px from the edge of the figure to a value.
  at(value) {
    return within(this, value);
  }

  from(px) {
    return this.first + ((px - this.offset) / this.length) * (this.last - this.first);
  }

  ticks() {
    const { tickvals, ticktext, nticks, visible } = this.axis;
    if (visible === false) return [];
    if (tickvals) return tickvals.map((value, i) => [value, ticktext[i]]);
    return roundTicks([this.first, this.last], nticks ?? 6).map((value) => [value, `${value}`]);
  }

  // The name of a value: its label if it has one, else the number.
  name(value) {
    const { tickvals, ticktext } = this.axis;
    const found = tickvals ? tickvals.indexOf(value) : -1;
    return found < 0 ? `${Math.round(value * 10) / 10}` : ticktext[found];
  }

  labels() {
    const { tickfont, tickangle, ticklabelstandoff: air = 3 } = this.axis;
    return this.ticks().map(([value, text]) => {
      const place = this.beside(this.at(value), air);
      const look = { size: tickfont?.size ?? 12, turned: tickangle === -90, axis: this.letter, side: this.side };
      return { text, ...look, ...place };
    });
  }

  beside(along, air) {
    if (this.letter === "y") return { left: this.start - air, top: along };
    return { left: along, top: this.side === "top" ? this.start - air : this.start + air };
  }
}

// Start and length of a part of the drawing area, in px.
function areaOf({ width, height, margin: { l, r, t, b } }, letter, [low, high]) {
  const [edge, inner, start] = letter === "x" ? [l, width - l - r, low] : [t, height - t - b, 1 - high];
  return [edge + start * inner, (high - low) * inner];
}

// All axes of a figure by their names, `x`, `y`, `x2` …; `all` is a table of them, and `said` changes if they do.
export function axesOf(traces, layout) {
  const all = {};
  for (const [key, axis] of Object.entries(layout)) {
    const found = /^([xy])axis(\d*)$/.exec(key);
    if (!found) continue;
    const [, letter, number] = found;
    const id = letter + number;
    const range = rangeOf(axis, traces, letter, id);
    all[id] = new Axis(id, axis, range, areaOf(layout, letter, axis.domain ?? [0, 1]));
  }
  if (all.y.axis.scaleanchor) makeSquare(all.x, all.y);
  for (const axis of Object.values(all)) axis.start = startOf(axis, all);
  const said = JSON.stringify(Object.values(all).map((each) => [each.ticks(), each.offset, each.length]));
  return { ...all, all, said };
}

// Where the labels of an axis begin: at the edge of the other axis.
function startOf(axis, all) {
  const { anchor = axis.letter === "x" ? "y" : "x" } = axis.axis;
  const other = all[anchor];
  if (axis.letter === "y") return other.offset;
  return axis.side === "top" ? other.offset : other.offset + other.length;
}
