// The candidates for the next token, or for a masked one, as bars. When the cursor moves, every bar runs from where its
// token was to its new length; while the view plays, all start at zero. A click on a candidate takes it.

import { Cell } from "./cell.js";
import { button, element } from "./dom.js";
import { shortened } from "./text.js";
import { decode } from "./values.js";

// Milliseconds that the bars run while the view plays, and after any other step; the greatest height of a bar in px;
// the most letters of a name; less probable candidates are one, "others".
const [RACE, STEP, LANE, LONGEST, LEAST] = [600, 140, 34, 13, 0.001];
// Px of a letter, about.
const LETTER = 7.4;
const STILL = matchMedia("(prefers-reduced-motion: reduce)");

// What each step shows; `whole`: the least probable candidates too.
export function runners({ names, shares, logs, chosen, ids, tried }, whole = false) {
  const values = decode(logs);
  const most = Math.max(...names.map((row) => row.length));
  return names.map((row, step) => {
    const found = row.map((name, i) => ({
      label: shortened(name, LONGEST),
      name,
      chosen: chosen[step] === i,
      text: shares[step][i],
      share: Math.exp(values[step * most + i]),
      log: values[step * most + i],
      id: ids[step]?.[i] ?? null,
      tried: Boolean(tried[step]?.includes(ids[step]?.[i])),
    }));
    return whole ? found : folded(found);
  });
}

// Candidates of hardly any probability as one, with that of all tokens that are not shown.
function folded(row) {
  const shown = row.filter(({ share, chosen, tried }) => share >= LEAST || chosen || tried);
  if (row.length - shown.length < 2) return row;
  const share = Math.max(0, 1 - shown.reduce((sum, each) => sum + each.share, 0));
  const text = share < LEAST ? "<0.1 %" : `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
  const rest = { label: "others", name: "All other tokens", share, log: Math.log(share), text, id: null };
  return [...shown, { ...rest, chosen: false, tried: false, rest: true }];
}

export class RaceCell extends Cell {
  draw(lib, data, [, height]) {
    if (this.read !== data) {
      this.steps = runners(data, this.whole);
      Object.assign(this, { read: data, shown: null, before: new Map() });
      this.lanes = Array.from({ length: this.most }, () => new Lane(this));
      this.list = element("div", "lv-race", this.lanes.map((lane) => lane.root));
      this.body.replaceChildren(this.list);
    }
    this.list.style.setProperty("--longest", `${this.longest}px`);
    const factor = this.view.presenting.factor;
    this.list.style.height = height ? `${Math.min(height, LANE * factor * this.lanes.length)}px` : "";
    this.update();
  }

  // Px that the longest name at any step needs.
  get longest() {
    const lengths = (this.data?.names ?? []).flat().map((name) => Math.min(name.length, LONGEST));
    return Math.ceil(LETTER * Math.max(1, ...lengths));
  }

  // Most candidates of a step.
  get most() {
    const rows = this.data ? runners(this.data, this.whole) : [];
    return Math.max(1, ...rows.map((row) => row.length));
  }

  // Shows the candidates that are one, "others", from now on.
  unfold() {
    Object.assign(this, { whole: true, read: null });
    this.view.resized();
  }

  row() {
    return this.view.inbox.position(this.data.follows);
  }

  update() {
    const step = this.steps?.[this.row()];
    if (!step || this.shown === step) return;
    const { playing } = this.view.controls;
    for (const [i, lane] of this.lanes.entries()) lane.show(step[i]);
    if (this.shown && !STILL.matches) this.run(step, playing ? RACE : STEP, playing ? new Map() : this.before);
    this.before = new Map(step.map(({ name, share }) => [name, share]));
    this.shown = step;
  }

  run(step, duration, before) {
    for (const [i, lane] of this.lanes.entries()) lane.run(before.get(step[i]?.name) ?? 0, duration);
  }
}

// One candidate: its name, its bar, its probability.
class Lane {
  constructor(cell) {
    const { view } = cell;
    this.cell = cell;
    this.name = element("bdi", "lv-name");
    this.bar = element("i");
    this.share = element("span", "lv-share");
    const act = () => view.guard(() => (this.rest ? cell.unfold() : view.outbox.goOn(cell.row(), this.id)));
    this.root = button("lv-runner", [this.name, element("span", "lv-lane", this.bar), this.share], act);
  }

  show(runner) {
    this.root.hidden = !runner;
    if (!runner) {
      this.name.textContent = this.share.textContent = "";
      return;
    }
    const { label, name, chosen, text, share, log, id, tried, rest } = runner;
    Object.assign(this, { now: share, id, rest });
    this.root.disabled = !rest && (chosen || id === null);
    this.root.classList.toggle("lv-tried", tried);
    this.name.textContent = label;
    this.share.textContent = text;
    this.bar.style.transform = `scaleX(${share})`;
    this.root.classList.toggle("lv-chosen", chosen);
    this.root.classList.toggle("lv-rest", Boolean(rest));
    const offered = this.root.disabled ? "" : `. Click to ${this.cell.data.puts}${tried ? " (tried already)" : ""}`;
    const logged = `log-probability ${log.toFixed(2)} nats`;
    this.root.title = rest
      ? `${name} together: probability ${share.toFixed(3)}. Click to see those among the first ten`
      : `${name}: probability ${share.toFixed(3)}, ${logged}${offered}`;
  }

  run(from, duration) {
    if (this.root.hidden) return;
    for (const each of this.bar.getAnimations()) each.cancel();
    const frames = [{ transform: `scaleX(${from})` }, { transform: `scaleX(${this.now})` }];
    this.bar.animate(frames, { duration, easing: "cubic-bezier(.25,.6,.3,1)" });
  }
}
