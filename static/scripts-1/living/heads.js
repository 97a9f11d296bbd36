// All heads of a kind as tiles, pooled as in the app; a click on one opens it in its map.

import { element } from "../linked_view/dom.js";
import { written } from "./data.js";
import { library } from "./drawing.js";
import { Numbers } from "./numbers.js";

// Px of a tile at most, and around all of them.
const [LARGEST, AROUND] = [72, { l: 30, t: 26, r: 4, b: 4 }];

// The largest level of each block of cells, as `figures.maps.heatmap.pool` takes it.
export function pooled(levels, [rows, columns], most) {
  const [down, across] = [Math.ceil(rows / most), Math.ceil(columns / most)];
  const [high, wide] = [Math.ceil(rows / down), Math.ceil(columns / across)];
  const cells = new Uint8Array(high * wide);
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const at = Math.floor(row / down) * wide + Math.floor(column / across);
      cells[at] = Math.max(cells[at], levels[row * columns + column]);
    }
  }
  return { cells, high, wide };
}

export class Heads {
  constructor(run, name, choose) {
    Object.assign(this, { run, name, feed: run.kinds[name].tiles });
    const { title, alt, shows, pooled: joined, badge, opens, hue } = this.feed;
    const caption = [shows, joined, badge.text, opens].filter(Boolean).join(" · ");
    this.node = element("div", "lv-plot", undefined, { role: "img", "aria-label": `${title}. ${alt}` });
    this.numbers = new Numbers(run, name);
    const parts = [element("div", "lv-title", title), this.node, element("figcaption", "lv-caption", caption)];
    const look = { "data-hue": hue, "data-tiles": name };
    this.root = element("figure", "lv-cell living-kind", [...parts, this.numbers.root], look);
    this.figure = JSON.parse(this.feed.figure);
    this.figure.data[0].z = this.sheet();
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.root);
    this.choose = choose;
  }

  // The cells of all tiles, with a gap between them.
  sheet() {
    const { run, name, feed } = this;
    const { size, shape, whole } = run.kinds[name];
    const tile = (...head) =>
      whole ? run.tile(run.kinds[name], head) : pooled(run.levels(name, head), shape, feed.most);
    const { high, wide } = tile(0, 0);
    const { x0, x1 } = this.figure.layout.shapes.at(-1); // the frame of a head takes its tile and one gap
    const gap = x1 - x0 - wide;
    const [rows, columns] = [size[0] * (high + gap) - gap, size[1] * (wide + gap) - gap];
    const sheet = new Uint8Array(rows * columns);
    for (let layer = 0; layer < size[0]; layer += 1) {
      for (let head = 0; head < size[1]; head += 1) {
        const { cells } = tile(layer, head);
        for (let row = 0; row < high; row += 1) {
          const start = (layer * (high + gap) + row) * columns + head * (wide + gap);
          sheet.set(cells.subarray(row * wide, (row + 1) * wide), start);
        }
      }
    }
    return written(sheet, "u1", [rows, columns]);
  }

  // Frames the head that is shown; the last shape of the figure is that frame.
  show([layer, head], look) {
    const shown = `${layer} ${head} ${look.color} ${look.family}`;
    if (shown === this.shown) return;
    this.shown = shown;
    this.numbers.show([layer, head]);
    const { xaxis, yaxis, shapes } = this.figure.layout;
    const frame = shapes.at(-1);
    const [wide, high] = [(frame.x1 - frame.x0) / 2, (frame.y1 - frame.y0) / 2];
    const [x, y] = [xaxis.tickvals[head], yaxis.tickvals[layer]];
    Object.assign(frame, { x0: x - wide, x1: x + wide, y0: y - high, y1: y + high });
    this.look = look;
    this.draw();
  }

  draw() {
    const [layers, heads] = this.run.kinds[this.name].size;
    const room = this.root.clientWidth;
    if (!room || !this.look) return;
    const side = Math.min(LARGEST, (room - AROUND.l - AROUND.r) / heads);
    const { layout, data } = this.figure;
    const [width, height] = [AROUND.l + AROUND.r + heads * side, AROUND.t + AROUND.b + layers * side];
    Object.assign(layout, { width, height, margin: AROUND, font: { ...layout.font, ...this.look } });
    data[1].marker.size = side;
    library.react(this.node, data, layout);
    this.node.on("plotly_click", ({ points }) => points[0].customdata && this.choose(this.name, points[0].customdata));
  }
}
