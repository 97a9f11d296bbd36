// All heads of a kind as small pictures in a box of their own that scrolls. The pictures are drawn once; how they
// stand, and what is written at them, comes with another feed, which is small and follows the cursor.

import { Cell } from "./cell.js";
import { button, element } from "./dom.js";
import { decode } from "./values.js";

// Px of a tile: the least, the most, the least with a name under it, the gap after it; and what stands beside all.
const [LEAST, MOST, NAMED, GAP, BESIDE] = [34, 72, 52, 4, 64];
// Opacity of the smallest weight, as in a map.
const FAINT = 0.04;

// The opacity of every cell, 0 to 255: a masked one has none, and the smallest weight is not nothing.
export function opacities(levels) {
  return Uint8ClampedArray.from(levels, (level) => (level ? 255 * (FAINT + ((1 - FAINT) * (level - 1)) / 254) : 0));
}

// Px of a tile, if so many stand in a row.
export const sideOf = (width, heads) => Math.floor(Math.min(MOST, Math.max(LEAST, (width - BESIDE) / heads - GAP)));

export class WallCell extends Cell {
  draw(lib, data, [width, high]) {
    this.side = sideOf(width, data.size[1]);
    this.body.style.maxHeight = high ? `${high}px` : "";
    this.body.classList.add("lv-all-heads");
    if (this.read !== data) {
      this.read = data;
      this.tiles = this.pictures(data);
      this.ranked = null;
    }
    this.update();
  }

  get ranking() {
    return this.view.inbox.current("ranking");
  }

  // A button with its picture for every head, by layer.
  pictures({ size: [layers, heads], cells }) {
    const [, , high, wide] = cells.shape.split(",").map(Number);
    const alphas = opacities(decode(cells));
    const colour = hueOf(this.root);
    return Array.from({ length: layers }, (_, layer) =>
      Array.from({ length: heads }, (__, head) => {
        const start = (layer * heads + head) * high * wide;
        const node = element("canvas", "", undefined, { width: wide, height: high });
        paint(node, alphas.subarray(start, start + high * wide), colour);
        return this.tile(node, [layer, head]);
      }),
    );
  }

  tile(picture, [layer, head]) {
    const act = () => this.view.guard(() => this.choose([layer, head]));
    const name = element("span", "lv-tile-name", `L${layer + 1} H${head + 1}`);
    const number = element("span", "lv-tile-number");
    const label = `layer ${layer + 1}, head ${head + 1}`;
    const look = { tabindex: "-1", "aria-label": label, "data-head": `${layer}.${head}` };
    const root = button("lv-tile", [picture, name, number], act, look);
    return { root, number };
  }

  choose(head) {
    if (this.live) this.view.outbox.tell({ head: [this.drawn.picks, ...head] });
  }

  update() {
    const { ranking } = this;
    if (!ranking || !this.tiles) return;
    this.body.style.setProperty("--tile", `${ranking.aligned ? this.side : Math.max(NAMED, this.side)}px`);
    if (this.ranked === ranking) return;
    const before = this.ranked;
    this.ranked = ranking;
    if (JSON.stringify(before?.groups) !== JSON.stringify(ranking.groups)) this.arrange(ranking);
    for (const [layer, row] of this.tiles.entries()) {
      for (const [head, tile] of row.entries()) this.write(tile, ranking, [layer, head]);
    }
    this.reveal(ranking.head);
  }

  arrange({ groups, aligned }) {
    this.body.classList.toggle("lv-aligned", aligned);
    const parts = groups.map(({ name, heads }) => {
      const tiles = heads.map(([layer, head]) => this.tiles[layer][head].root);
      const row = element("div", "lv-tiles", tiles);
      return element("div", "lv-tile-group", [...(name ? [element("span", "lv-tile-label", name)] : []), row]);
    });
    this.body.replaceChildren(...(aligned ? [this.columns(groups)] : []), ...parts);
  }

  // The numbers of the heads over the first row.
  columns(groups) {
    const heads = groups[0]?.heads ?? [];
    const names = heads.map(([, head]) => element("span", "", `H${head + 1}`));
    return element("div", "lv-tile-columns", names, { "aria-hidden": "true" });
  }

  write({ root, number }, { head: chosen, numbers, notes }, [layer, head]) {
    const on = `${chosen}` === `${[layer, head]}`;
    root.classList.toggle("lv-chosen-tile", on);
    root.setAttribute("aria-pressed", String(on));
    root.setAttribute("tabindex", on ? "0" : "-1");
    root.title = notes[layer][head];
    number.textContent = numbers[layer][head];
  }

  // Scrolls the box, and not the page, to the head that is shown large.
  reveal([layer, head]) {
    const node = this.tiles[layer]?.[head]?.root;
    if (!node?.isConnected) return;
    const [box, at] = [this.body.getBoundingClientRect(), node.getBoundingClientRect()];
    if (at.top < box.top + 20 || at.bottom > box.bottom) this.body.scrollTop += at.top - box.top - box.height / 2;
    if (at.left < box.left + BESIDE || at.right > box.right) this.body.scrollLeft += at.left - box.left - box.width / 2;
  }

  words(strips) {
    super.words(strips);
    const order = this.ranking?.order;
    this.order?.remove();
    this.order = this.data && order ? element("span", "lv-about", order) : null;
    if (this.order) this.text.title.append(this.order);
  }
}

// The colour of a kind, as red, green and blue.
function hueOf(root) {
  const text = getComputedStyle(root).getPropertyValue("--lv-hue").trim();
  return [1, 3, 5].map((at) => Number.parseInt(text.slice(at, at + 2), 16));
}

function paint(canvas, alphas, colour) {
  const { width, height } = canvas;
  const pen = canvas.getContext("2d");
  const picture = pen.createImageData(width, height);
  for (const [i, alpha] of alphas.entries()) picture.data.set([...colour, alpha], 4 * i);
  pen.putImageData(picture, 0, 0);
}
