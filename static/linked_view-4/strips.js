// The token strips of the linked view: one chip for each character or piece, marked as the cursor moves.

import { element } from "./cell.js";

const OF_SIDE = { source: "source", target: "step" };

export class Strips {
  constructor(view) {
    Object.assign(this, { view, drawn: null, chips: { source: [], target: [] } });
    this.root = element("div", "lv-strips");
  }

  // Whether these strips were not drawn yet.
  draw(strips) {
    if (this.drawn === strips) return false;
    this.drawn = strips;
    this.root.replaceChildren();
    this.chips = { source: [], target: [] };
    for (const side of this.view.spec.strips) {
      const line = element("div", `lv-strip lv-strip-${side}`, undefined, { role: "group", "aria-label": `${side} tokens`, dir: strips.direction[side] });
      line.append(element("span", "lv-side", side));
      for (const chip of strips[side]) line.append(this.chip(side, chip));
      this.root.append(line);
    }
    return true;
  }

  chip(side, { text, first, last, gap, special, index, gloss }) {
    const node = element("button", "lv-chip", undefined, { type: "button", tabindex: "-1" });
    node.append(element("bdi", "lv-word", text));
    if (index) node.firstChild.append(element("sub", "", index));
    if (gloss) node.append(element("small", "lv-gloss", gloss));
    node.classList.toggle("lv-gap", gap);
    node.classList.toggle("lv-special", special);
    const { view } = this;
    node.addEventListener("click", () => view.guard(() => {
      if (side === "target") view.move({ step: first });
      else view.move({ source: view.at.source === first && view.spec.cursor === "step" ? null : first });
    }));
    for (let i = first; i <= last; i++) this.chips[side][i] = node;
    return node;
  }

  // Marks where the cursors stand, and what is still to come.
  follow() {
    for (const side of this.view.spec.strips) {
      const chips = this.chips[side];
      const on = chips[this.view.position(OF_SIDE[side])];
      for (const [i, chip] of chips.entries()) {
        chip.classList.toggle("lv-on", chip === on);
        chip.setAttribute("aria-pressed", chip === on);
        chip.classList.toggle("lv-later", side === "target" && i > this.view.at.step);
      }
    }
  }

  // Marks the tokens under the pointer: a span of each, or nothing.
  hover(spans) {
    for (const side of this.view.spec.strips) {
      const span = spans[OF_SIDE[side]];
      const chips = this.chips[side];
      for (const [i, chip] of chips.entries()) {
        const on = Boolean(span) && span[0] <= i && i < span[1];
        if (!on || chip !== chips[i - 1]) chip.classList.toggle("lv-hovered", on);
      }
    }
  }
}
