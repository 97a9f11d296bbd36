// The buttons under the maps that say what the cells show: the weight, or a measure of which the file has numbers.

import { button, element } from "../linked_view/dom.js";

const NAMES = { weight: "Weight", carried: "Carried", effect: "Effect" };

export class Switches {
  constructor(run, host, changed) {
    Object.assign(this, { measure: "weight", buttons: {} });
    const measures = new Set(Object.values(run.kinds).flatMap((kind) => Object.keys(kind.measures ?? {})));
    if (!measures.size) return;
    const choose = (name) => {
      this.measure = name;
      changed();
    };
    for (const name of ["weight", ...measures]) {
      this.buttons[name] = button("lv-button", NAMES[name], () => choose(name));
    }
    const parts = [element("span", "", "Cells say"), ...Object.values(this.buttons)];
    host.after(element("div", "lv-controls living-switches", parts));
  }

  show() {
    for (const [name, each] of Object.entries(this.buttons)) {
      each.setAttribute("aria-pressed", String(name === this.measure));
    }
  }
}
