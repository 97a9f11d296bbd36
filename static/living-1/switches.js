// The switches under the maps: pieces of a word as one, special tokens hidden, and what the cells say.

import { element } from "../linked_view-7/dom.js";

const READINGS = { words: "Words", special: "Hide special tokens" };
const MEASURES = { weight: "Weight", carried: "Carried", effect: "Effect" };
const namesOf = (run, part) => new Set(Object.values(run.kinds).flatMap((kind) => Object.keys(kind[part] ?? {})));

export class Switches {
  constructor(run, changed) {
    Object.assign(this, { changed, reading: "", measure: "weight", buttons: {} });
    this.root = element("div", "lv-controls living-switches");
    const [readings, measures] = [namesOf(run, "readings"), namesOf(run, "measures")];
    for (const name of Object.keys(READINGS)) if (readings.has(name)) this.add(name, READINGS[name]);
    if (measures.size) this.root.append(element("span", "", "Cells say"));
    for (const name of measures.size ? ["weight", ...measures] : []) this.add(name, MEASURES[name]);
    this.show();
  }

  add(name, text) {
    const button = element("button", "lv-button", text, { type: "button" });
    button.addEventListener("click", () => this.turn(name));
    this.root.append(button);
    this.buttons[name] = button;
  }

  // A reading is named by the switches that are on, in their order.
  turn(name) {
    if (name in MEASURES) this.measure = name;
    else {
      const on = new Set(this.reading.split(" "));
      if (!on.delete(name)) on.add(name);
      const names = Object.keys(READINGS).filter((each) => on.has(each));
      this.reading = names.join(" ");
    }
    this.changed();
  }

  show() {
    const on = [...this.reading.split(" "), this.measure];
    for (const [name, button] of Object.entries(this.buttons)) {
      button.setAttribute("aria-pressed", String(on.includes(name)));
      button.disabled = name in READINGS && this.measure !== "weight"; // a measure is shown by pieces
    }
  }
}
