// The linked view: token strips, a cursor over decode steps, and cells (one class each way of drawing) that move together.
// Python sends each figure once (feed) and the cursor often (show); a step moves an overlay and never a map.

import { clamp, element } from "./cell.js";
import { LinesCell, StrongestCell } from "./links.js";
import { BarsCell, MapCell, TilesCell, WholeCell } from "./plots.js";
import { Strips } from "./strips.js";

const HERE = new URL("app/static/", document.baseURI);
const PLOTLY = "plotly-cartesian-4.1.1.min.js";
const STYLE = "linked_view-4/view.css";
const PLAY_EVERY = 700;
const CLASSES = { overview: TilesCell, whole: WholeCell, lines: LinesCell, strongest: StrongestCell, next: BarsCell, row: BarsCell };
const makeCell = (view, name) => new (CLASSES[name] || MapCell)(view, name);
const views = new Map();

const plotly = new Promise((resolve, reject) => {
  document.head.append(element("link", "", undefined, { rel: "stylesheet", href: new URL(STYLE, HERE) }));
  const script = element("script", "", undefined, { src: new URL(PLOTLY, HERE), async: "" });
  script.onload = () => resolve(window.Plotly);
  script.onerror = () => reject(new Error("plotly.js did not arrive"));
  document.head.append(script);
});
plotly.catch(() => {});

class View {
  constructor(name) {
    Object.assign(this, { name, feeds: {}, cells: {}, at: { step: 0, source: null }, seq: 0, trace: null, picks: {} });
  }

  // --- what arrives ---------------------------------------------------------------------------------------

  receive(data) {
    this.feeds[data.name] = data;
    this.draw();
  }

  show({ data, parentElement, setStateValue }) {
    this.send = setStateValue;
    if (this.host !== parentElement) this.trace = null;
    const same = this.host === parentElement && `${this.spec.plots}` === `${data.plots}`;
    if (!same) this.build(parentElement, data);
    this.spec = data;
    this.seq = Math.max(this.seq, data.ack);
    let changed = true;
    if (data.trace !== this.trace) {
      this.stop();
      this.picks = {};
      this.trace = data.trace;
      this.at = { step: data.step, source: data.source };
    } else if (data.ack >= this.seq && !this.playing && !this.telling) {
      changed = data.step !== this.at.step || data.source !== this.at.source;
      this.at = { step: data.step, source: data.source };
    } else changed = false;
    const style = getComputedStyle(this.root);
    const ink = style.getPropertyValue("--st-text-color").trim();
    this.family = style.fontFamily;
    if (ink !== this.ink) {
      this.ink = ink;
      for (const cell of Object.values(this.cells)) cell.drawn = null;
      changed = true;
    }
    if (changed || !same) this.draw();
    return () => this.host === parentElement && this.leave();
  }

  leave() {
    this.stop();
    this.observer.disconnect();
    for (const cell of Object.values(this.cells)) cell.leave();
    this.host.replaceChildren();
    Object.assign(this, { host: null, root: null, cells: {} });
  }

  // --- the frame, built once ------------------------------------------------------------------------------

  build(host, data) {
    if (this.host) this.leave();
    this.host = host;
    this.spec = data;
    this.root = element("div", `lv lv-${data.layout}`, undefined, { tabindex: "0", role: "group", "data-view": this.name,
      "aria-label": "Linked view. Left and right arrows move the cursor, up and down arrows move the key token, space plays." });
    this.strips = new Strips(this);
    this.controls = this.buildControls();
    this.tourBox = element("div", "lv-tour", undefined, { role: "note", hidden: "" });
    this.sentence = element("p", "lv-sentence");
    this.grid = element("div", "lv-grid");
    this.live = element("div", "lv-live", undefined, { "aria-live": "polite" });
    this.problem = element("p", "lv-problem", undefined, { role: "alert", hidden: "" });
    for (const name of data.plots) this.grid.append((this.cells[name] = makeCell(this, name)).root);
    this.focus = this.cells[data.focus] || makeCell(this, data.focus);
    this.root.append(this.strips.root, this.controls, this.tourBox, this.sentence, this.grid, this.problem, this.live);
    this.root.addEventListener("keydown", (event) => this.guard(() => this.press(event)));
    host.replaceChildren(this.root);
    this.observer = new ResizeObserver(() => this.guard(() => this.resize()));
    this.observer.observe(this.grid);
    plotly.catch(() => this.say("The maps could not be loaded, because plotly.js did not arrive. The strips and the "
      + "cursor still work; reload the page to try again."));
  }

  buildControls() {
    const bar = element("div", "lv-controls");
    const button = (text, label, action) => {
      const node = element("button", "lv-button", text, { type: "button", "aria-label": label, title: label });
      node.addEventListener("click", () => this.guard(action));
      return node;
    };
    this.slider = element("input", "lv-slider", undefined, { type: "range", min: "0", "aria-label": "cursor" });
    this.slider.addEventListener("input", () => this.guard(() => this.moveCursor(Number(this.slider.value))));
    this.count = element("span", "lv-count");
    this.playButton = button("▷ play", "play", () => (this.playing ? this.stop(true) : this.play()));
    this.tourButton = button("tour", "take the tour: five clicks", () => this.tour(0));
    this.playButton.classList.add("lv-text");
    this.tourButton.classList.add("lv-text");
    bar.append(button("◀", "one back", () => this.moveCursor(this.cursor() - 1)), this.slider,
      button("▶", "one on", () => this.moveCursor(this.cursor() + 1)), this.count, this.playButton, this.tourButton);
    return bar;
  }

  // --- drawing --------------------------------------------------------------------------------------------

  draw() {
    if (!this.root) return;
    this.guard(() => {
      this.root.dataset.ready = "false";
      const strips = this.current("strips");
      if (strips && this.strips.draw(strips)) {
        this.tourButton.hidden = !strips.tour.length;
        this.endTour();
      }
      this.update();
    });
    plotly.then((lib) => this.guard(() => this.drawPlots(lib)), () => {});
  }

  current(name) {
    const data = this.feeds[name];
    return data && data.trace === this.trace ? data : null;
  }

  drawPlots(lib) {
    if (!this.root) return;
    const drawn = Object.values(this.cells).map((cell) => cell.refresh(lib));
    this.update();
    if (drawn.every(Boolean) && this.current("strips")) requestAnimationFrame(() => { if (this.root) this.root.dataset.ready = "true"; });
  }

  resize() {
    plotly.then((lib) => this.guard(() => this.drawPlots(lib)), () => {});
  }

  // --- the cursor -----------------------------------------------------------------------------------------

  cursor() {
    return this.spec.cursor === "step" ? this.at.step : this.sourceNow();
  }

  sourceNow() {
    if (this.at.source !== null) return this.at.source;
    const strips = this.current("strips");
    return strips && strips.follow.length ? strips.follow[clamp(this.at.step, 0, strips.follow.length - 1)] : 0;
  }

  position(kind) {
    return kind === "step" ? this.at.step : kind === "source" ? this.sourceNow() : null;
  }

  // The key that stands out: the one picked, or where the other cursor stands; null in self-attention.
  key({ kind, rows, columns }) {
    return this.picks[kind] ?? (columns === rows ? null : this.position(columns));
  }

  update() {
    const strips = this.current("strips");
    if (!this.root || !strips) return;
    const length = this.spec.cursor === "step" ? strips.steps : strips.names.source.length;
    this.slider.max = length - 1;
    this.slider.value = this.cursor();
    this.count.textContent = `${this.spec.cursor === "step" ? "step" : "source token"} ${this.cursor() + 1} of ${length}`;
    this.strips.follow();
    for (const cell of Object.values(this.cells)) cell.follow();
    this.updateWords(strips);
    const painted = `${this.cursor()}`;
    requestAnimationFrame(() => { if (this.root) this.root.dataset.painted = painted; });
  }

  updateWords(strips) {
    if (this.focus.data) this.sentence.replaceChildren(...this.rich(this.focus.sentence()));
    if (strips.claim && strips.claim.step === this.at.step) this.sentence.append(element("span", "lv-claim", strips.claim.text));
    for (const cell of Object.values(this.cells)) cell.words(strips);
  }

  rich(parts) {
    return (parts || []).map((part, i) => (i % 2 ? element("em", "", `“${part}”`) : document.createTextNode(part)));
  }

  // --- what the visitor does ------------------------------------------------------------------------------

  move(change) {
    const strips = this.current("strips");
    if (!strips) return;
    const next = { ...this.at, ...change };
    next.step = clamp(next.step, 0, strips.steps - 1);
    if (next.source !== null) next.source = clamp(next.source, 0, strips.names.source.length - 1);
    if (next.step === this.at.step && next.source === this.at.source) return;
    if (next.step !== this.at.step || this.spec.cursor === "source") this.picks = {};
    this.at = next;
    this.update();
    if (!this.playing) this.tellSoon();
    if (!this.playing) this.announce();
  }

  moveCursor(position) {
    this.stop();
    this.move(this.spec.cursor === "step" ? { step: position } : { source: position });
  }

  // After the picture: the server's answer must not compete with the paint, and quick steps become one message.
  tellSoon() {
    clearTimeout(this.telling);
    this.telling = setTimeout(() => this.guard(() => this.tell()), 80);
  }

  tell(more = {}) {
    clearTimeout(this.telling);
    this.telling = null;
    if (!this.root) return;
    this.seq += 1;
    this.send("at", { ...this.at, seq: this.seq, trace: this.trace, pick: this.lastPick || null, ...more });
  }

  announce() {
    const { names } = this.current("strips");
    const place = this.spec.cursor === "step"
      ? `Step ${this.at.step + 1}: reads ${names.reads[this.at.step]}, predicts ${names.predicts[this.at.step]}.`
      : `Source token ${this.sourceNow() + 1}: ${names.source[this.sourceNow()]}.`;
    this.live.textContent = `${place} ${this.focus.says()}`;
  }

  // A row and a column of a head, as spans of tokens; null leaves one as it is.
  pick(data, row, column) {
    this.stop();
    const change = {};
    const inside = (span, token) => span[0] <= token && token < span[1];
    if (row && !inside(row, this.position(data.rows))) change[data.rows] = row[0];
    if (column && data.columns !== data.rows && !(this.at[data.columns] !== null && inside(column, this.at[data.columns]))) change[data.columns] = column[0];
    const picks = { ...this.picks };
    this.lastPick = { kind: data.kind, row: row ? row[0] : this.position(data.rows), column: column ? column[0] : null };
    this.move(change);
    if (!row) this.picks = picks;
    if (column && data.columns === data.rows) this.picks[data.kind] = column[0];
    this.update();
    this.announce();
  }

  // What lies under the pointer is marked in the strips and in every other cell.
  hover(from, row, column) {
    const found = from ? { [from.drawn.columns]: column } : {};
    if (from && row) found[from.drawn.rows] = row;
    this.strips.hover(found);
    for (const cell of Object.values(this.cells)) if (cell.drawn) cell.ring(from && (cell === from ? { row, column } : found), cell === from);
  }

  press(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const last = this.spec.cursor === "step" ? this.current("strips")?.steps : this.current("strips")?.names.source.length;
    const moves = { ArrowLeft: () => this.moveCursor(this.cursor() - 1), ArrowRight: () => this.moveCursor(this.cursor() + 1),
      Home: () => this.moveCursor(0), End: () => this.moveCursor(last - 1),
      ArrowUp: () => this.moveKey(-1), ArrowDown: () => this.moveKey(1),
      Escape: () => (this.tourBox.hidden ? this.move({ source: this.spec.cursor === "step" ? null : this.at.source }) : this.endTour()) };
    const onButton = event.target.tagName === "BUTTON";
    const action = event.key === " " && !onButton ? () => (this.playing ? this.stop(true) : this.play()) : moves[event.key];
    if (!action || !last) return;
    event.preventDefault();
    action();
  }

  moveKey(by) {
    const data = this.focus.data;
    if (!data) return;
    const { columns } = data.spans;
    const last = columns.length - 1;
    const next = this.key(data) === null ? (by > 0 ? 0 : last) : this.focus.column() + by;
    if (next === clamp(next, 0, last) || data.columns === data.rows) this.pick(data, null, columns[clamp(next, 0, last)]);
    else this.move({ [data.columns]: this.position(data.columns) + by });
  }

  play() {
    const last = Number(this.slider.max);
    const to = (position) => this.move(this.spec.cursor === "step" ? { step: position } : { source: position });
    this.playButton.textContent = "◼ stop";
    this.playing = setInterval(() => this.guard(() => (this.cursor() >= last ? this.stop(true) : to(this.cursor() + 1))), PLAY_EVERY);
    to(this.cursor() >= last ? 0 : this.cursor() + 1);
  }

  stop(report = false) {
    if (!this.playing) return;
    clearInterval(this.playing);
    this.playing = null;
    this.playButton.textContent = "▷ play";
    if (report) this.tell();
  }

  // --- the tour -------------------------------------------------------------------------------------------

  tour(number) {
    const stops = this.current("strips").tour;
    this.light(null);
    if (number >= stops.length) return this.endTour();
    const { plot, text, step } = stops[number];
    if (step !== null) this.moveCursor(step);
    this.light(plot);
    const next = element("button", "lv-button lv-text", number + 1 < stops.length ? "next" : "done", { type: "button" });
    const close = element("button", "lv-button lv-text", "end tour", { type: "button" });
    next.addEventListener("click", () => this.guard(() => this.tour(number + 1)));
    close.addEventListener("click", () => this.guard(() => this.endTour()));
    this.tourBox.replaceChildren(element("b", "", `${number + 1} of ${stops.length}`), element("span", "lv-tour-text", text), next, close);
    this.tourBox.hidden = false;
    this.sentence.hidden = true;
    next.focus({ preventScroll: true });
  }

  endTour() {
    this.light(null);
    this.tourBox.hidden = true;
    this.sentence.hidden = false;
  }

  light(name) {
    for (const [each, cell] of Object.entries(this.cells)) cell.root.classList.toggle("lv-lit", each === name);
    this.controls.classList.toggle("lv-lit", name === "controls");
  }

  // --- when something goes wrong --------------------------------------------------------------------------

  guard(action) {
    try {
      return action();
    } catch (error) {
      console.error("linked view", error);
      this.say("A part of this view could not be drawn. Reload the page; the address keeps where you were.");
    }
  }

  say(text) {
    if (!this.problem) return;
    this.problem.textContent = text;
    this.problem.hidden = false;
  }
}

function view(name) {
  if (!views.has(name)) views.set(name, new View(name));
  return views.get(name);
}

export function feed({ data }) {
  const target = view(data.view);
  target.guard(() => target.receive(data));
}

export function show(component) {
  const target = view(component.data.view);
  return target.guard(() => target.show(component));
}
