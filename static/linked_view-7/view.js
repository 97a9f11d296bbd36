// The linked view: token strips, a cursor over decode steps, and cells that move together (one class for each way of
// drawing). Python sends each figure once (feed) and the cursor often (show). A step moves overlays, never a map.

import { Cell } from "./cell.js";
import { Controls } from "./controls.js";
import { heard, moved, picked, sameCursor, sourceAt, unheard } from "./cursor.js";
import { element } from "./dom.js";
import { Flow } from "./flow.js";
import { Focus } from "./focus.js";
import { Keys } from "./keys.js";
import { fetchPlotly } from "./library.js";
import { LinesCell, StrongestCell } from "./links.js";
import { MapCell } from "./map.js";
import { BarsCell, TilesCell, WholeCell } from "./plots.js";
import { Presenting } from "./present.js";
import { RaceCell } from "./race.js";
import { pointed } from "./spans.js";
import { Stage } from "./stage.js";
import { Strips } from "./strips.js";
import { placeName } from "./text.js";
import { Tour } from "./tour.js";

const [AT_ONCE, TELL_AFTER] = [20, 80];
const HEARD_WITHIN = 2000;
// Px: the narrowest window in which a map is fitted under a question, what is around the map, and its least height.
const [NARROW, AROUND, LEAST] = [641, 64, 240];
const LABEL =
  "Linked view. Left and right arrows move the cursor, up and down arrows move the key token, space plays, " +
  "question mark lists the keys.";
const NO_PLOTLY =
  "The maps could not be drawn, because plotly.js is missing. " +
  "The strips and the cursor still work; reload the page to try again.";
const FAILED = "A part of this view could not be drawn. Reload the page; the address keeps your place.";
const CLASSES = {
  map: MapCell,
  lines: LinesCell,
  strongest: StrongestCell,
  tiles: TilesCell,
  whole: WholeCell,
  bars: BarsCell,
  race: RaceCell,
};
const views = new Map();

const plotly = fetchPlotly();
plotly.catch(() => {});

class View {
  constructor(name) {
    Object.assign(this, { name, feeds: {}, cells: {}, picks: {}, seq: 0, trace: null, telling: null });
    Object.assign(this, { repeating: null, patience: HEARD_WITHIN, answered: 0 });
    Object.assign(this, { presenting: new Presenting(this), focused: new Focus() });
    this.mounts = new Map();
    this.at = { step: 0, source: null };
  }

  // --- what arrives ------------------------------------------------------------------------------------------

  receive(data) {
    this.feeds[data.name] = data;
    if (this.root) this.suit(data);
    this.draw();
  }

  // Where the page grows above the view, Streamlit mounts it at its old place and its new one for a moment, in any
  // order: whichever place is left last, the view goes on in one that is still there.
  show(mount) {
    const { parentElement } = mount;
    this.mounts.set(parentElement, mount);
    this.showIn(mount);
    return () => {
      this.mounts.delete(parentElement);
      if (this.host !== parentElement) return;
      this.leave();
      const left = [...this.mounts.values()].findLast((other) => other.parentElement.isConnected);
      if (left) this.showIn(left);
    };
  }

  showIn({ data, parentElement, setStateValue, setTriggerValue }) {
    this.send = setStateValue;
    this.trigger = setTriggerValue;
    const elsewhere = this.host !== parentElement;
    const untold = elsewhere && unheard({ seq: this.seq, trace: this.trace, untold: this.telling !== null }, data);
    if (elsewhere && !untold) this.trace = null;
    const rebuilt = elsewhere || `${this.spec.plots}` !== `${data.plots}`;
    if (rebuilt) this.build(parentElement, data);
    this.spec = data;
    const news = [rebuilt, this.hear(data), this.recolour()];
    if (news.some(Boolean)) this.draw();
    else if (data.awaited) this.tellDrawn();
    if (untold) this.tellSoon();
  }

  // Tells a server that waits for the picture, if it is there already.
  tellDrawn() {
    if (this.root.dataset.ready === "true") this.tellPainted();
  }

  // Takes the server's cursor, and returns whether there is something to draw.
  hear(data) {
    const news = data.ack >= this.seq || data.trace !== this.trace;
    if (data.ack >= this.asked?.seq || data.trace !== this.trace) this.asked = null;
    if (data.ack >= this.seq) this.heard();
    this.seq = Math.max(this.seq, data.ack);
    const busy = Boolean(this.controls.playing || this.telling);
    const { at, changed } = heard({ at: this.at, seq: this.seq, trace: this.trace, busy }, data);
    if (data.trace !== this.trace) {
      this.controls.stop();
      this.forget();
      this.picks = {};
      this.trace = data.trace;
    }
    this.at = at;
    if (news) this.presenting.show(Boolean(data.present));
    return changed;
  }

  // Reads the page's text colour, and returns whether it changed; if so, every cell is drawn again.
  recolour() {
    const style = getComputedStyle(this.root);
    const ink = style.getPropertyValue("--st-text-color").trim();
    this.family = style.fontFamily;
    if (ink === this.ink) return false;
    this.ink = ink;
    for (const cell of this.all()) cell.drawn = null;
    return true;
  }

  leave() {
    this.controls.stop();
    this.observer.disconnect();
    for (const part of [...this.all(), this.keys, this.stage]) part?.leave();
    this.host.replaceChildren();
    Object.assign(this, { host: null, root: null, cells: {} });
  }

  // --- the frame, built once ---------------------------------------------------------------------------------

  build(host, data) {
    if (this.host) this.leave();
    this.host = host;
    this.spec = data;
    this.buildParts(data);
    this.root = this.buildRoot(data);
    host.replaceChildren(this.root);
    this.observer = new ResizeObserver(() => this.resized());
    for (const part of [this.grid, this.strips.root]) this.observer.observe(part);
    this.stage?.watch(this.root);
    if (this.asking && !this.stage) this.observer.observe(this.asking.querySelector(".stVerticalBlock"));
    this.focused.restore(this.root);
    plotly.catch(() => this.say(NO_PLOTLY));
  }

  buildParts(data) {
    this.stage = data.layout === "home" ? new Stage(this) : null;
    this.strips = new Strips(this);
    this.flow = this.stage && new Flow(this);
    const over = [this.flow?.root, this.strips.root].filter(Boolean);
    this.top = element("div", "lv-top", [...over, this.presenting.choice]);
    this.controls = new Controls(this);
    this.tour = new Tour(this);
    this.keys = new Keys(this);
    this.sentence = element("p", "lv-sentence");
    this.live = element("div", "lv-live", undefined, { "aria-live": "polite" });
    this.problem = element("p", "lv-problem", undefined, { role: "alert", hidden: "" });
    this.cells = Object.fromEntries(data.plots.map((name) => [name, this.makeCell(name)]));
    this.grid = element("div", "lv-grid", this.all().map((cell) => cell.root));
    this.focus = this.cells[data.focus] || this.makeCell(data.focus);
  }

  // A feed says how it is drawn; until it arrives, an empty cell keeps its place.
  makeCell(name) {
    return new (CLASSES[this.feeds[name]?.draw] ?? Cell)(this, name);
  }

  // Puts a cell of the right class into the place of one that was made before its feed came.
  suit({ name, draw }) {
    const cell = this.cells[name] ?? (this.spec.focus === name ? this.focus : null);
    if (!cell || cell instanceof CLASSES[draw]) return;
    const made = this.makeCell(name);
    if (this.focus === cell) this.focus = made;
    if (!this.cells[name]) return;
    cell.root.replaceWith(made.root);
    cell.leave();
    this.cells[name] = made;
  }

  buildRoot(data) {
    const look = { tabindex: "0", role: "group", "data-view": this.name, "aria-label": LABEL };
    const { top, controls, tour, sentence, grid, problem, live, keys } = this;
    const parts = [top, controls.root, tour.root, sentence, grid, problem, live, keys.root];
    const root = element("div", `lv lv-${data.layout}`, parts, look);
    root.addEventListener("keydown", (event) => this.guard(() => keys.press(event)));
    this.focused.watch(root);
    return root;
  }

  // Whether there is a picture that could fill the window.
  get presents() {
    return this.all().length > 0;
  }

  all() {
    return Object.values(this.cells);
  }

  // --- drawing -----------------------------------------------------------------------------------------------

  draw() {
    if (!this.root) return;
    this.guard(() => {
      this.root.dataset.ready = "false";
      this.drawStrips();
      this.update();
    });
    this.redraw();
  }

  drawStrips() {
    const strips = this.current("strips");
    if (!strips || !this.strips.draw(strips)) return;
    this.controls.tourButton.hidden = !strips.tour.length;
    this.tour.end();
  }

  // A feed, if it belongs to the translation on the screen.
  current(name) {
    const data = this.feeds[name];
    return data && data.trace === this.trace ? data : null;
  }

  resized() {
    this.flow?.forget();
    this.redraw();
  }

  redraw() {
    this.redrawing ??= plotly.then(
      (lib) => {
        this.redrawing = null;
        this.guard(() => this.drawPlots(lib));
      },
      () => {},
    );
  }

  // On a stage, the room of each cell depends on the others: none is drawn before the feeds of all are there.
  drawPlots(lib) {
    if (!this.root) return;
    const shown = this.all().filter((cell) => this.presenting.shows(cell));
    if (this.stage && !shown.every((cell) => cell.data)) return;
    this.stage?.arrange();
    this.presenting.arrange();
    const drawn = shown.map((cell) => cell.refresh(lib));
    this.update();
    if (!drawn.every(Boolean) || !this.current("strips")) return;
    this.afterPaint("ready", "true");
    this.afterPaint("fitted", `${innerWidth}x${innerHeight}`);
    if (this.spec.awaited) this.tellPainted();
  }

  // Px that are left of the window for a map under a lesson's question, which is seen together with the map; null if
  // nothing is asked here, or the page is too narrow or the window too low for both.
  get left() {
    const { asking } = this;
    if (!asking || innerWidth < NARROW) return null;
    const left = innerHeight - this.grid.getBoundingClientRect().top - asking.scrollTop - AROUND;
    return left < LEAST ? null : Math.floor(left);
  }

  // The page, if a lesson asks something on it; null if it does not.
  get asking() {
    return this.root.closest(".stMain:has(.st-key-lesson-question)");
  }

  // Says once that the picture is there, after its frame: the server then loads what the picture did not need.
  tellPainted() {
    this.spec = { ...this.spec, awaited: false };
    requestAnimationFrame(() => setTimeout(() => this.root && this.trigger("painted", true)));
  }

  // Records a state as a data attribute of the frame, at the next paint.
  afterPaint(name, value) {
    requestAnimationFrame(() => {
      if (this.root) this.root.dataset[name] = value;
    });
  }

  // --- the cursor --------------------------------------------------------------------------------------------

  get bySteps() {
    return this.spec.cursor === "step";
  }

  cursor() {
    return this.bySteps ? this.at.step : this.sourceNow();
  }

  length() {
    const { steps, sources } = this.sizes();
    return this.bySteps ? steps : sources;
  }

  sizes() {
    const strips = this.current("strips");
    const steps = this.spec.steps ?? strips?.steps ?? 0; // beside a longer run, the cursor goes on to its end
    return { steps, sources: strips?.names.source.length ?? 0 };
  }

  sourceNow() {
    return sourceAt(this.at, this.current("strips")?.follow ?? []);
  }

  position(axis) {
    const last = (this.current("strips")?.steps ?? 1) - 1;
    return { step: Math.min(this.at.step, last), source: this.sourceNow() }[axis] ?? null;
  }

  // The highlighted key: the picked one, or the one at the other cursor; null in self-attention.
  key({ kind, rows, columns }) {
    return this.picks[kind] ?? (columns === rows || this.unmarked ? null : this.position(columns));
  }

  // Whether the source token is not marked: it follows the step, and a question is open that it would answer.
  get unmarked() {
    return this.bySteps && this.at.source === null && Boolean(this.current("strips")?.silent);
  }

  update() {
    const strips = this.current("strips");
    if (!this.root || !strips) return;
    this.controls.follow(this.cursor(), this.length());
    this.strips.follow();
    for (const cell of this.all()) cell.follow();
    this.flow?.follow();
    this.updateWords(strips);
    this.afterPaint("painted", `${this.cursor()}`);
  }

  updateWords(strips) {
    if (this.focus.data) this.sentence.replaceChildren(...rich(this.focus.sentence()));
    const claim = strips.claim?.step === this.at.step ? strips.claim.text : "";
    const noted = this.stage ? this.focus.noted() : "";
    const limit = this.stage && this.focus.data?.limit;
    for (const text of [noted, claim, limit]) if (text) this.sentence.append(" ", element("span", "lv-claim", text));
    for (const cell of this.all()) cell.words(strips);
  }

  // --- what the visitor does ---------------------------------------------------------------------------------

  move(change) {
    if (!this.current("strips")) return;
    const next = moved(this.at, change, this.sizes());
    if (sameCursor(next, this.at)) return;
    if (next.step !== this.at.step || !this.bySteps) this.picks = {};
    this.at = next;
    this.update();
    if (this.controls.playing) return;
    this.tellSoon();
    this.announce();
  }

  moveTo(position) {
    this.move(this.bySteps ? { step: position } : { source: position });
  }

  moveCursor(position) {
    this.controls.stop();
    this.moveTo(position);
  }

  // Sends after the paint, which the server's answer must not delay: a step alone at once, quick steps as one message.
  // A move waits while the answer to the one before is on its way: if two runs of the server follow each other closely,
  // Streamlit takes the view off the page for a moment, and keys are lost.
  tellSoon() {
    const quiet = this.telling || this.repeating ? 0 : performance.now() - this.answered;
    clearTimeout(this.telling);
    const send = () => this.guard(() => this.repeating ?? this.tell());
    this.telling = setTimeout(send, Math.max(AT_ONCE, TELL_AFTER - quiet));
  }

  // Drops a move that was not sent yet, and stops repeating messages.
  forget() {
    clearTimeout(this.telling);
    clearTimeout(this.repeating);
    Object.assign(this, { telling: null, repeating: null });
  }

  // The server has heard the last message; a move that waited for this is sent.
  heard() {
    clearTimeout(this.repeating);
    Object.assign(this, { repeating: null, patience: HEARD_WITHIN, answered: performance.now() });
    if (this.telling) this.tellSoon();
  }

  // A message may get lost on the way to the callback, so an unanswered one is repeated, at ever longer intervals.
  repeat() {
    this.repeating = setTimeout(() => this.guard(() => this.tell()), this.patience);
    this.patience *= 2;
  }

  // A chosen head or candidate (`{ head }`, `{ candidate }`) is sent until the server has heard of it, because a later
  // message may overtake an earlier one.
  tell(choice = null) {
    if (!this.root) return;
    this.forget();
    this.repeat();
    this.seq += 1;
    const { seq, trace, lastPick } = this;
    if (choice) this.asked = { choice, seq };
    const shown = { ...(this.presents && { present: this.presenting.on }), ...this.asked?.choice };
    this.send("at", { ...this.at, seq, trace, pick: lastPick || null, ...shown });
  }

  announce() {
    const place = { step: this.position("step"), source: this.sourceNow() };
    const { names } = this.current("strips");
    this.live.textContent = `${placeName(this.spec.cursor, place, names)} ${this.focus.says()}`;
  }

  // Picks a row and a column of a head, as spans of tokens; null leaves that side unchanged.
  pick(data, row, column) {
    this.controls.stop();
    const here = this.position(data.rows);
    const picks = { ...this.picks };
    this.lastPick = { kind: data.kind, row: row ? row[0] : here, column: column ? column[0] : null };
    this.move(picked(data, row, column, this.at, here));
    if (!row) this.picks = picks;
    if (column && data.columns === data.rows) this.picks[data.kind] = column[0];
    this.update();
    this.announce();
  }

  // Goes on with another token at the cursor's step.
  goOn(token) {
    this.controls.stop();
    this.tell({ candidate: [this.at.step, token] });
  }

  // Marks the tokens under the pointer in the strips and in every other cell.
  hover(from, row, column) {
    const found = from ? pointed(from.drawn, row, column) : {};
    this.strips.hover(found);
    for (const cell of this.all()) {
      const own = cell === from;
      if (cell.drawn) cell.ring(from && (own ? { row, column } : found), own);
    }
  }

  // --- when something goes wrong -----------------------------------------------------------------------------

  guard(action) {
    try {
      return action();
    } catch (error) {
      console.error("linked view", error);
      this.say(FAILED);
      return undefined;
    }
  }

  say(text) {
    if (!this.problem) return;
    this.problem.textContent = text;
    this.problem.hidden = false;
  }
}

// Nodes for alternating texts and tokens; tokens get quotation marks.
function rich(parts) {
  return (parts || []).map((part, i) => (i % 2 ? element("em", "", `“${part}”`) : document.createTextNode(part)));
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
