// The buttons under the maps that say what the cells show: the weight, or a measure of which the file has numbers.

import { element } from "../linked_view-7/dom.js";

const NAMES = { weight: "Weight", carried: "Carried", effect: "Effect" };

export class Switches {
  constructor(run, host, changed) {
    Object.assign(this, { measure: "weight", buttons: {} });
    const measures = new Set(Object.values(run.kinds).flatMap((kind) => Object.keys(kind.measures ?? {})));
    if (!measures.size) return;
    const root = element("div", "lv-controls living-switches");
    root.append(element("span", "", "Cells say"));
    for (const name of ["weight", ...measures]) {
      this.buttons[name] = element("button", "lv-button", NAMES[name], { type: "button" });
      this.buttons[name].addEventListener("click", () => {
        this.measure = name;
        changed();
      });
      root.append(this.buttons[name]);
    }
    host.after(root);
  }

  show() {
    for (const [name, button] of Object.entries(this.buttons)) {
      button.setAttribute("aria-pressed", String(name === this.measure));
    }
  }
}
