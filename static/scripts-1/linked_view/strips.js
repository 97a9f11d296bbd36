// The token strips of the linked view: one chip per character or piece, marked as the cursor moves.

import { button, element } from "./dom.js";
import { ranged, toggled } from "./together.js";

const OF_SIDE = { source: "source", target: "step" };

export class Strips {
  constructor(view) {
    Object.assign(this, { view, drawn: null, chips: { source: [], target: [] } });
    this.root = element("div", "lv-strips");
  }

  // Draws the strips if they are new, and returns whether they are.
  draw(strips) {
    if (this.drawn === strips) return false;
    this.drawn = strips;
    this.chips = { source: [], target: [] };
    this.root.replaceChildren(...this.view.inbox.spec.strips.map((side) => this.strip(side, strips)));
    return true;
  }

  strip(side, strips) {
    const name = strips.sides[side];
    const look = { role: "group", "aria-label": `${name} tokens`, dir: strips.direction[side] };
    const line = element("div", `lv-strip lv-strip-${side}`, [element("span", "lv-side", name)], look);
    if (side === "target" && strips.begins) line.append(beginning(strips.begins));
    for (const chip of strips[side]) {
      if (chip.role) line.append(element("span", "lv-role", chip.role));
      line.append(this.chip(side, chip));
    }
    if (side === "target") {
      for (const chip of this.chips.target.slice(0, strips.given)) give(chip);
      if (strips.glossed) line.append(element("span", "lv-glossed", strips.glossed));
    }
    return line;
  }

  chip(side, { text, first, last, gap, special, index, gloss, shade, title }) {
    const parts = [element("bdi", "lv-word", index ? [text, element("sub", "", index)] : text)];
    if (gloss) parts.push(glossed(gloss));
    const clicked = (event) => this.view.guard(() => this.clicked(side, [first, last], event));
    const node = button("lv-chip", parts, clicked, { tabindex: "-1" });
    this.wire(node, side, [first, last]);
    if (shade !== undefined) darken(node, shade, title);
    node.classList.toggle("lv-gap", gap);
    node.classList.toggle("lv-special", special);
    for (let i = first; i <= last; i++) this.chips[side][i] = node;
    return node;
  }

  // Dragging a mouse over tokens chooses them; a finger scrolls.
  wire(node, side, chip) {
    node.addEventListener("pointerdown", ({ pointerType, button: pressed, shiftKey, ctrlKey, metaKey }) => {
      const plain = pointerType === "mouse" && !pressed && !shiftKey && !ctrlKey && !metaKey;
      this.from = plain ? { side, chip } : null;
    });
    node.addEventListener("pointerenter", ({ buttons }) => this.view.guard(() => this.dragged(side, chip, buttons)));
  }

  dragged(side, [first, last], buttons) {
    const { from } = this;
    if (!(buttons & 1)) this.from = null;
    if (!this.from || from.side !== side) return;
    const on = first >= from.chip[0];
    const [stays, to] = on ? [from.chip[0], last] : [from.chip[1], first];
    this.view.outbox.choose(OF_SIDE[side], ranged([], stays, to), to);
  }

  // Shift goes on to a token, Control or Command takes it in or leaves it out.
  extended(side, [first, last], shift) {
    const { inbox, outbox } = this.view;
    const axis = OF_SIDE[side];
    const [tokens, at] = [inbox.chosen(axis), inbox.position(axis)];
    const chip = ranged([], first, last);
    const to = last < at ? first : last;
    const chosen = shift ? ranged(tokens, at, to) : toggled(tokens, at, chip);
    outbox.choose(axis, chosen, chosen.includes(to) ? to : chosen.at(-1));
  }

  // A second click on the source token lets the source follow the step again.
  clicked(side, [token, last], { shiftKey, ctrlKey, metaKey }) {
    const { view } = this;
    if (shiftKey || ctrlKey || metaKey) {
      this.extended(side, [token, last], shiftKey);
      return;
    }
    const again = view.inbox.at.source === token && view.inbox.spec.cursor === "step";
    if (side === "target") view.outbox.move({ step: token });
    else view.outbox.move({ source: again ? null : token });
  }

  // Marks the tokens at the cursors, and the tokens still to come.
  follow() {
    for (const side of this.view.inbox.spec.strips) {
      const chips = this.chips[side];
      const { inbox } = this.view;
      const several = inbox.chosen(OF_SIDE[side]);
      const one = side === "source" && inbox.unmarked ? [] : [inbox.position(OF_SIDE[side])];
      const on = new Set((several.length ? several : one).map((token) => chips[token]));
      const written = side === "target" && inbox.current("strips").names.predicts.length > 0;
      const last = Math.max(inbox.at.step, ...inbox.chosen("step"));
      for (const [i, chip] of chips.entries()) {
        chip.classList.toggle("lv-on", on.has(chip));
        chip.setAttribute("aria-pressed", on.has(chip));
        chip.classList.toggle("lv-later", written && i > last);
      }
    }
  }

  // Marks the tokens under the pointer: one span in each strip, or none. Any token of a chip marks the whole chip.
  hover(spans) {
    for (const side of this.view.inbox.spec.strips) {
      const chips = this.chips[side];
      const under = new Set(chips.slice(...(spans[OF_SIDE[side]] ?? [0, 0])));
      for (const chip of chips) chip.classList.toggle("lv-hovered", under.has(chip));
    }
  }
}

// What a text begins with: it is read before the first step, so no cursor stands on it.
function beginning(text) {
  const node = element("span", "lv-chip lv-gap lv-given", [element("bdi", "lv-word", text)]);
  node.title = "read before the first step";
  return node;
}

// Marks a token that was given to the model, and not written by it.
function give(chip) {
  chip.classList.add("lv-given");
  chip.title = "given in the prompt";
}

// Shades a token by a share of the full colour.
function darken(chip, share, title) {
  chip.classList.add("lv-shade");
  chip.style.setProperty("--share", `${Math.round(100 * share)}%`);
  chip.title = title;
}

// A word under a target word; a line beside them says what such words are.
function glossed({ text, origin }) {
  const node = element("small", "lv-gloss", text);
  if (origin !== "example") node.title = `from the ${origin}`;
  return node;
}
