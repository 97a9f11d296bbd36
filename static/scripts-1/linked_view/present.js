// Presenting, for a lecture room: one map fills the height of the window, in large type, with the strips, the cursor
// and the sentence beside it, and nothing else on the screen.

import { button, element } from "./dom.js";

// How much larger than usual the map is written.
const LARGER = 2;
// Px around a presented map: from the window's edges, and for its title and colours.
const [EDGE, AROUND] = [64, 96];
// The share of the window that the map may take; the strips and the sentence stand beside it.
const WIDE = 0.64;
const NARROW = matchMedia("(max-width: 900px)");

export class Presenting {
  constructor(view) {
    Object.assign(this, { view, on: false, chosen: null });
    this.choice = element("div", "lv-choice", undefined, { role: "group", "aria-label": "Map", hidden: "" });
  }

  get factor() {
    return this.on ? LARGER : 1;
  }

  // The cells that can fill the window: the maps; without one, what the page draws large.
  get offered() {
    const { cells, inbox } = this.view;
    const maps = Object.keys(cells).filter((name) => cells[name].fitting);
    return maps.length ? maps : [inbox.spec.focus].filter((name) => cells[name]);
  }

  // The cell on the screen.
  get name() {
    const { offered } = this;
    const { focus } = this.view.inbox.spec;
    return [this.chosen, focus].find((name) => offered.includes(name)) ?? offered[0];
  }

  // Whether a cell is on the screen.
  shows(cell) {
    return !this.on || cell.name === this.name;
  }

  // The room of the presented map, [width, height] in px; null for the usual one.
  get room() {
    if (!this.on) return null;
    const width = NARROW.matches ? innerWidth - EDGE : WIDE * innerWidth - EDGE;
    return [Math.floor(width), Math.floor(innerHeight - AROUND)];
  }

  // Shows the view as the address says.
  show(on) {
    const { root, controls } = this.view;
    if (root.classList.contains("lv-present") === on) return;
    this.on = on;
    root.classList.toggle("lv-present", on);
    this.view.mark();
    controls.presents(on);
    this.arrange();
    this.view.resized();
  }

  // Marks the cell on the screen, and offers the others.
  arrange() {
    this.choice.hidden = true;
    if (!this.on) return;
    const { offered, name, view } = this;
    for (const cell of view.all()) cell.root.classList.toggle("lv-shown", cell.name === name);
    this.choice.hidden = offered.length < 2;
    this.choice.replaceChildren(...offered.map((each) => this.button(each)));
  }

  button(name) {
    const { view } = this;
    const choose = () => {
      this.chosen = name;
      this.arrange();
      view.resized();
    };
    const look = { "aria-pressed": String(name === this.name) };
    return button("lv-button", view.cells[name].data?.title ?? name, () => view.guard(choose), look);
  }

  // Starts or ends presenting as the visitor asks, and updates the address.
  ask(on) {
    if (!this.view.presents) return;
    this.show(on);
    this.view.outbox.tell();
    this.view.root.focus({ preventScroll: true });
  }
}
