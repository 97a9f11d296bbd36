// The linked view: token strips, a cursor over decode steps, and cells that move together (one class for each way of
// drawing). Python sends each figure once (feed) and the cursor often (show). A step moves overlays, never a map.
// This is what is drawn; what arrives is in `inbox.js`, what is told in `outbox.js`.

import { Cell } from "./cell.js";
import { Controls } from "./controls.js";
import { element } from "./dom.js";
import { Flow } from "./flow.js";
import { Focus } from "./focus.js";
import { Inbox } from "./inbox.js";
import { Keys } from "./keys.js";
import { fetchPlotly } from "./library.js";
import { LinesCell, StrongestCell } from "./links.js";
import { MapCell } from "./map.js";
import { Outbox } from "./outbox.js";
import { BarsCell, TilesCell, WholeCell } from "./plots.js";
import { Presenting } from "./present.js";
import { RaceCell } from "./race.js";
import { pointed } from "./spans.js";
import { Stage } from "./stage.js";
import { Strips } from "./strips.js";
import { Tour } from "./tour.js";
import { WallCell } from "./wall.js";

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
  wall: WallCell,
};
const views = new Map();

const plotly = fetchPlotly();
plotly.catch(() => {});

class View {
  constructor(name) {
    Object.assign(this, { name, cells: {}, presenting: new Presenting(this), focused: new Focus() });
    this.inbox = new Inbox(this);
    this.outbox = new Outbox(this, this.inbox);
  }

  // --- the frame, built once ---------------------------------------------------------------------------------

  build(host, data) {
    if (this.host) this.leave();
    this.host = host;
    this.inbox.spec = data;
    this.buildParts(data);
    this.root = this.buildRoot(data);
    host.replaceChildren(this.root);
    this.mark();
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
    return new (CLASSES[this.inbox.feeds[name]?.draw] ?? Cell)(this, name);
  }

  // Puts a cell of the right class into the place of one that was made before its feed came.
  suit({ name, draw }) {
    const cell = this.cells[name] ?? (this.inbox.spec.focus === name ? this.focus : null);
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

  leave() {
    this.controls.stop();
    this.observer.disconnect();
    for (const part of [...this.all(), this.keys, this.stage]) part?.leave();
    this.host.replaceChildren();
    Object.assign(this, { host: null, root: null, cells: {} });
    this.mark();
  }

  // Says of the whole page what its views show, so that its other parts make room: by classes of its body, since a
  // style that looks for a view inside the page (`:has`) is computed anew for all of it at each change of a map.
  mark() {
    const shown = [...views.values()].filter(({ root }) => root);
    const { classList } = document.body;
    classList.toggle("lv-fills", shown.some(({ stage }) => stage));
    classList.toggle("lv-presents", shown.some(({ root }) => root.classList.contains("lv-present")));
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

  drawStrips() {
    const strips = this.inbox.current("strips");
    if (!strips || !this.strips.draw(strips)) return;
    this.controls.tourButton.hidden = !strips.tour.length;
    this.tour.end();
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
    if (!drawn.every(Boolean) || !this.inbox.current("strips")) return;
    this.afterPaint("ready", "true");
    this.afterPaint("fitted", `${innerWidth}x${innerHeight}`);
    if (this.inbox.spec.awaited) this.outbox.tellPainted();
  }

  // Tells a server that waits for the picture, if it is there already.
  tellReady() {
    if (this.root.dataset.ready === "true") this.outbox.tellPainted();
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

  // Records a state as a data attribute of the frame, at the next paint.
  afterPaint(name, value) {
    requestAnimationFrame(() => {
      if (this.root) this.root.dataset[name] = value;
    });
  }

  update() {
    const strips = this.inbox.current("strips");
    if (!this.root || !strips) return;
    this.controls.follow(this.inbox.cursor(), this.inbox.length());
    this.strips.follow();
    for (const cell of this.all()) cell.follow();
    this.flow?.follow();
    this.updateWords(strips);
    this.afterPaint("painted", `${this.inbox.cursor()}`);
  }

  // Writes the words of some cells anew, whose pictures stay.
  reword(names) {
    for (const cell of this.all().filter((each) => names.includes(each.name))) cell.text.data = null;
    const strips = this.inbox.current("strips");
    if (strips) this.updateWords(strips);
  }

  updateWords(strips) {
    if (this.focus.data) this.sentence.replaceChildren(...rich(this.focus.sentence()));
    const claim = strips.claim?.step === this.inbox.at.step ? strips.claim.text : "";
    for (const text of [claim, ...this.beside]) if (text) this.sentence.append(" ", element("span", "lv-claim", text));
    for (const cell of this.all()) cell.words(strips);
  }

  // What stands behind the sentence on a stage: a note about its row, and what its numbers cannot say.
  get beside() {
    if (!this.stage) return [];
    return [this.focus.noted(), this.inbox.several ? "" : this.focus.data?.limit];
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
  target.guard(() => target.inbox.receive(data));
}

export function show(component) {
  const target = view(component.data.view);
  return target.guard(() => target.inbox.show(component));
}
