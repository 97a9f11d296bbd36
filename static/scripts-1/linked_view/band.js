// @ts-check
// Under a map, the row that stands for several: as wide as the map's columns, in its colour.

import { element, place } from "./dom.js";
import { strength } from "./values.js";

const [LEAST, MOST] = [12, 26];
// Of the full colour: so small is not nothing, as in the map.
const FAINT = 4;

export class Band {
  constructor() {
    this.root = element("div", "lv-band", undefined, { hidden: "" });
    this.shown = "";
  }

  // Draws a row under the axis of the columns, or nothing. `silent`: without numbers.
  show(row, { across, cell, scale, names, quantity, silent }) {
    const shown = row && JSON.stringify([row, across.offset, cell, scale, silent]);
    if (this.shown === shown) return;
    this.shown = shown;
    this.root.hidden = !row;
    if (!row) return;
    const cells = row.weights.map((weight, column) => {
      const number = silent ? "" : `: ${quantity} ${weight.toFixed(3)}`;
      const node = element("i", row.seen[column] ? "" : "lv-unseen", undefined, { title: `${names[column]}${number}` });
      const share = FAINT + (100 - FAINT) * strength(weight, scale);
      node.style.setProperty("--share", `${row.seen[column] ? share.toFixed(1) : 0}%`);
      return node;
    });
    const line = element("div", "lv-band-cells", cells, { role: "img", "aria-label": row.name });
    const name = element("span", "lv-band-name", row.how, { title: row.name });
    place(line, { left: across.offset, width: across.length, height: Math.min(Math.max(cell, LEAST), MOST) });
    place(name, { width: across.offset - 6 });
    this.root.replaceChildren(name, line);
  }
}
