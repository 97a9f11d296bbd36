// A run of a page: gives the linked view its feeds, and answers what the app's server answers there.

import { NONE } from "../linked_view/together.js";
import { feed, show } from "../linked_view/view.js";
import { Heads } from "./heads.js";
import { has, placeIn, written } from "./place.js";
import { Switches } from "./switches.js";
import { followTheme } from "./theme.js";

// Px of a printed sheet in landscape, A4 or Letter, and of the texts over the view.
const [SHEET, SPARE] = [[975, 700], 80];

export const part = (name, number) => document.getElementById(`${name}${number}`);

// A run of the page; `all` are the runs that stand side by side, and `number` ends the ids of its parts.
export class Living {
  constructor(run, number, all) {
    const [host, wall, ended] = ["view", "heads", "end"].map((name) => part(name, number));
    Object.assign(this, { run, all, host, wall, ended, ack: 0, present: false });
    this.switches = new Switches(run, this.host, () => this.tell());
    this.heads = { ...run.place.heads };
    this.at = { step: run.place.step, source: run.place.source, chosen: NONE };
    this.drawTiles(number);
  }

  // All heads of each kind, in the place of those of a run before.
  drawTiles(number) {
    const chosen = (kind, head) => this.choose(kind, head);
    this.tiles = Object.keys(this.run.kinds).map((name) => new Heads(this.run, name, chosen));
    part("heads", number).replaceChildren(...this.tiles.map(({ root }) => root));
  }

  start(place) {
    this.go(place);
    this.go(location.hash);
    if (this !== this.all[0]) this.join(this.all[0]);
    this.begin();
    addEventListener("hashchange", () => {
      this.go(location.hash);
      this.send();
    });
    followTheme(() => this.send());
    addEventListener("beforeprint", () => this.shrink());
  }

  // Sends everything of the run.
  begin() {
    for (const [name, each] of Object.entries(this.run.shown)) {
      if (name !== "strips") feed({ data: { ...each, name, view: this.run.spec.view } });
    }
    Object.assign(this, { sent: {}, stripped: false });
    this.send();
    // Beside the only map lie all heads of its kind.
    if (this.run.spec.alone) this.host.querySelector(".lv-grid").append(this.wall);
  }

  // Takes a place from the address; what it does not name stays as it is.
  go(hash) {
    const { kinds, shown } = this.run;
    const found = placeIn(hash, kinds, { ...shown.strips, steps: this.steps });
    Object.assign(this.heads, found.heads);
    this.at = { ...this.at, ...found.at };
  }

  // Steps of the longest run of the page.
  get steps() {
    return Math.max(...this.all.map(({ run }) => run.shown.strips.steps));
  }

  // Follows another run: its measure, its step, its heads where this run has them, and its source token if both read
  // the same.
  join({ at, run, heads, switches }) {
    this.switches.measure = switches.measure;
    const alike = `${run.shown.strips.names.source}` === `${this.run.shown.strips.names.source}`;
    this.at = { step: at.step, source: alike ? at.source : this.at.source, chosen: alike ? at.chosen : NONE };
    for (const [kind, head] of Object.entries(heads)) this.take(kind, head);
  }

  // Chooses a head, if this file has its map.
  take(kind, head) {
    const { size, whole } = this.run.kinds[kind] ?? { size: [0, 0] };
    if (head[0] < size[0] && head[1] < size[1] && has(whole, head)) this.heads[kind] = head;
  }

  // Shows what was asked of this run in all of them.
  tell() {
    for (const each of this.all) {
      if (each !== this) each.join(this);
      each.send();
    }
    this.all[0].write();
  }

  // Sends the maps that changed, and the cursor.
  send() {
    this.sendMaps(this.switches.measure);
    const data = { ...this.run.spec, ...this.at, ack: this.ack, present: this.present };
    show({ data, parentElement: this.host, setStateValue: (_, event) => this.hear(event), setTriggerValue() {} });
    const { ink: color, family } = this.look();
    for (const each of this.tiles) each.show(this.heads[each.name], { color, family });
    this.switches.show();
    const { steps } = this.run.shown.strips;
    if (this.ended) this.ended.textContent = this.at.step < steps || !steps ? "" : ` · ended after step ${steps}`;
  }

  sendMaps(measure) {
    for (const [kind, head] of Object.entries(this.heads)) {
      const asked = `${head} ${measure}`;
      if (this.sent[kind] === asked) continue;
      this.sent[kind] = asked;
      if (kind === "cross" || !this.stripped) feed({ data: this.run.strips(this.heads) });
      this.stripped = true;
      feed({ data: this.run.map(kind, head, measure) });
    }
  }

  look() {
    const style = getComputedStyle(this.host);
    return { ink: style.getPropertyValue("--st-text-color").trim(), family: style.fontFamily };
  }

  // What the visitor did; the answer comes after the view has finished what it does.
  hear({ step, source, chosen, seq, head, present }) {
    this.ack = seq;
    this.at = { step, source, chosen };
    if (head) this.take(head[0], head.slice(1));
    if (present !== undefined && present !== this.present) this.fill(present);
    queueMicrotask(() => this.tell());
  }

  choose(kind, head) {
    this.take(kind, head);
    this.tell();
  }

  // Presenting fills the screen where the browser allows it; else the window.
  fill(present) {
    this.present = present;
    const page = document.documentElement;
    const asked = present ? page.requestFullscreen?.() : document.fullscreenElement && document.exitFullscreen();
    asked?.catch?.(() => {});
  }

  // A printed page has the arrangement of the screen, as small as one sheet needs.
  shrink() {
    const { clientWidth: wide } = this.host.closest(".stVerticalBlock");
    const high = this.host.offsetHeight + document.querySelector(".living-proof").offsetHeight + SPARE;
    const { style } = document.documentElement;
    style.setProperty("--wide", `${wide}px`);
    style.setProperty("--print", `${Math.min(1, SHEET[0] / wide, SHEET[1] / high)}`);
  }

  // What the address says besides the place.
  get more() {
    return "";
  }

  // The place in the address, for a link to it; a page inside another may have no address of its own.
  write() {
    try {
      history.replaceState(null, "", written(this.at, this.heads, this.steps) + this.more);
    } catch {
      // then the link is that of the page around it
    }
  }
}
