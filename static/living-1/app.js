// A link to the app, which has the model, at the same view. Where the app runs is known from its export, or the reader
// says it once; then it stands in the address. Nothing is asked for before the link is followed.

import { element } from "../linked_view-7/dom.js";
import { written } from "./place.js";

const ASKS = "The app runs at";
const WRONG = "An address such as http://localhost:8501";

// The place that a text names; null if it is none.
export function placeOf(text) {
  try {
    const bare = !/^[a-z]+:(?!\d)/i.test(text); // `localhost:8501` is no scheme with a path
    const { protocol, origin, pathname } = new URL(bare ? `http://${text}` : text);
    return /^https?:$/.test(protocol) && !/\s/.test(text) ? origin + pathname.replace(/\/+$/, "") : null;
  } catch {
    return null;
  }
}

// The address of a view: the run's own parameters, then cursor and heads.
export function addressOf(place, { page, query }, at, heads) {
  return `${place}/${page}?${new URLSearchParams(query)}&${written(at, heads).slice(1)}`;
}

export class App {
  constructor(run, number, changed) {
    Object.assign(this, { run: run.app, place: placeOf(run.app.at), changed });
    this.links = ["Open in the app", "Open this view there"].map((text) =>
      element("a", "living-app", text, { target: "_blank", rel: "noopener noreferrer", hidden: "" }),
    );
    const asking = element("label", "", `${ASKS} `);
    this.box = element("input", "", undefined, { type: "url", placeholder: "http://localhost:8501" });
    this.box.addEventListener("change", () => this.take(this.box.value));
    asking.append(this.box);
    const [above, below] = this.links;
    document.getElementById(`texts${number}`).append(above);
    const line = element("p", "living-asks");
    line.append(asking, below);
    document.getElementById(`proof${number}`).after(line);
  }

  // The place as the address has it; an empty part if it is not known.
  get written() {
    return this.place ? `&app=${encodeURIComponent(this.place)}` : "";
  }

  read(hash) {
    this.place = placeOf(new URLSearchParams(hash.slice(1)).get("app") ?? "") ?? this.place;
  }

  take(text) {
    this.place = placeOf(text);
    this.box.setCustomValidity(text && !this.place ? WRONG : "");
    this.box.reportValidity();
    this.changed();
  }

  show(at, heads) {
    if (this.place) this.box.value = this.place;
    for (const link of this.links) {
      link.hidden = !this.place;
      if (this.place) link.href = addressOf(this.place, this.run, at, heads);
    }
  }
}
