// @ts-check
// The tour: a few stops, each of which highlights one figure and says what to see there.

import { button, element } from "./dom.js";

export class Tour {
  constructor(view) {
    this.view = view;
    this.root = element("div", "lv-tour", undefined, { role: "note", hidden: "" });
  }

  get running() {
    return !this.root.hidden;
  }

  // Goes to a stop, counted from 0; the tour ends after the last stop.
  go(number) {
    const stops = this.view.inbox.current("strips")?.tour ?? [];
    this.light(null);
    if (number >= stops.length) {
      this.end();
      return;
    }
    const { plot, text, step } = stops[number];
    if (step !== null) this.view.outbox.moveCursor(step);
    this.light(plot);
    this.say(number, stops.length, text);
  }

  say(number, length, text) {
    const act = (label, does) => button("lv-button lv-text", label, () => this.view.guard(does));
    const next = act(number + 1 < length ? "Next" : "Done", () => this.go(number + 1));
    const close = act("End tour", () => this.end());
    const count = element("b", "", `${number + 1} of ${length}`);
    this.root.replaceChildren(count, element("span", "lv-tour-text", text), next, close);
    this.root.hidden = false;
    this.view.sentence.hidden = true;
    next.focus({ preventScroll: true });
  }

  end() {
    this.light(null);
    this.root.hidden = true;
    this.view.sentence.hidden = false;
  }

  light(name) {
    for (const [each, cell] of Object.entries(this.view.cells)) cell.root.classList.toggle("lv-lit", each === name);
    this.view.controls.root.classList.toggle("lv-lit", name === "controls");
  }
}
