// A page that translates, or continues texts: the model runs in the reader's browser. The first picture is a run that Python wrote; behind
// it the engine loads, repeats runs of the Python package, and says how far it is from them. No network.

import { unpacked } from "../living/data.js";
import { Living, part } from "../living/shown.js";
import { Writing } from "../engine/chips.js";
import { button, element } from "../linked_view/dom.js";
import { NONE } from "../linked_view/together.js";
import { bytesOf } from "../linked_view/values.js";
import { BrowserRun } from "./run.js";
import { doubt, effect, together } from "./says.js";

const MOST_APART = 1e-3;
const REPEATS = "The runs of the Python package are being repeated.";
const NOT_YET = { passed: true, text: "… not yet compared", title: REPEATS };
const TOO_OLD = "This browser is too old to run the model; any browser from 2023 on can.";

// What a script tag holds, unzipped.
async function heldBy(name) {
  const node = part(name, "");
  const zipped = new Blob([bytesOf(node.textContent)]).stream();
  node.remove(); // its text takes as much room as the model
  return new Uint8Array(await new Response(zipped.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer());
}

// A file of the model: in the page, or beside it in a folder on a server.
async function file(name) {
  if (part(name, "")) return heldBy(name);
  const answer = await fetch(name);
  if (!answer.ok) throw new Error(`The file ${name} is not beside this page.`);
  return new Uint8Array(await answer.arrayBuffer());
}

// A port to the engine: a worker made of the page's own text, or the page itself where no worker can be.
async function started() {
  const { textContent: text } = part("engine", "");
  try {
    const worker = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
    await new Promise((begun, failed) => {
      worker.addEventListener("message", begun, { once: true });
      worker.addEventListener("error", failed, { once: true });
    });
    return worker;
  } catch {
    const { port1, port2 } = new MessageChannel();
    document.body.append(element("script", "", text));
    globalThis.serveEngine(port1);
    port2.start();
    return port2;
  }
}

// Questions to the engine, and its answers in the order in which they come.
class Engine {
  constructor(port) {
    Object.assign(this, { port, count: 0, waiting: new Map() });
    port.addEventListener("message", ({ data }) => this.hear(data));
  }

  // The answer to a question; while it is written, `writes` gets the text so far.
  ask(question, moved = [], writes = () => {}) {
    this.count += 1;
    const id = this.count;
    this.port.postMessage({ id, ...question }, moved);
    return new Promise((done, failed) => this.waiting.set(id, { done, failed, writes }));
  }

  hear({ id, ready, run, refused, writes }) {
    const { done, failed, writes: writing } = this.waiting.get(id) ?? {};
    if (!done) return; // the greeting of a worker
    if (writes !== undefined) writing(writes);
    else {
      this.waiting.delete(id);
      if (refused === undefined) done(run ?? ready);
      else failed(new Error(refused));
    }
  }
}

const apart = (one, other) => Math.max(...one.map((each, i) => Math.abs(each - other[i])));

// The largest differences between a run of the engine and the same one of the Python package; infinite if tokens
// differ.
function differences(run, { source, ids, logs, rows }) {
  if (`${run.source.ids}` !== `${source}` || `${run.ids}` !== `${ids}`) return { logs: Infinity, weights: Infinity };
  const weights = rows.map(([kind, layer, head, row, own]) => {
    const { shape, layers } = run.kinds[kind];
    const at = (head * shape[0] + row) * shape[1];
    return apart([...layers[layer].weights.subarray(at, at + own.length)], own);
  });
  return { logs: apart(run.steps.map(({ log }) => log), logs), weights: Math.max(...weights) };
}

class Live extends Living {
  constructor(run, page, engine) {
    super(run, "", []);
    this.all.push(this);
    Object.assign(this, { stored: run, page, engine, badge: NOT_YET, number: 0, off: [], target: "", asked: null });
    this.before = ""; // what the model writes with the heads that are off; empty if none is
    this.writing = new Writing(page.tables);
    this.text = page.first;
    const [form, own] = [part("ask", ""), part("own", "")];
    form.addEventListener("submit", (event) => this.submit(event, { text: form.elements.text.value, target: "" }));
    own?.addEventListener("submit", (event) => this.submit(event, { target: own.elements.target.value }));
    for (const each of page.examples) this.example(each);
    form.elements.text.value = this.text;
  }

  example({ label, text }) {
    const translate = () => this.translate({ text, target: "", off: [] });
    part("examples", "").append(button("live-example", label, translate, { title: text }));
  }

  submit(event, change) {
    event.preventDefault();
    this.translate({ off: [], ...change });
  }

  // Asks for a run; a sentence that was asked for before it gets no answer. What cannot be run is said, and what is on
  // the screen stays.
  async translate(change) {
    const asked = { text: this.text, target: this.target, off: this.off, ...change };
    part("ask", "").elements.text.value = asked.text;
    this.asked = asked;
    if (!this.engine) return;
    try {
      const writes = (text) => this.asked === asked && this.say(`Writing: ${text}`);
      const found = await this.engine.ask(asked, [], writes);
      const before = asked.off.length && found ? await this.whole(asked) : "";
      if (this.asked !== asked) return;
      const same = asked.text === this.text && asked.target === this.target;
      Object.assign(this, { text: asked.text, target: asked.target, off: asked.off, before });
      this.replace(found, same);
      const incomplete = found.cut && !this.continues;
      const cut = incomplete ? " It was cut at the limit of this page, so it is incomplete." : "";
      const ms = Math.max(1, Math.round(found.ms));
      this.say(`${found.predicts.length} tokens in ${ms} ms, in this browser.${cut} ${this.page.slow}`);
    } catch (error) {
      if (this.asked === asked) this.say(error.message, true);
    }
  }

  // What the model writes of a text with all its heads: asked for once a text. A translation that is given stays.
  async whole({ text, target }) {
    if (target) return "";
    if (this.usual?.text !== text) {
      const { text: written } = await this.engine.ask({ text, target, off: [], quiet: true });
      this.usual = { text, written };
    }
    return this.usual.written;
  }

  // Whether the model continues texts; else it translates them.
  get continues() {
    return !this.found.kinds.cross;
  }

  say(text, wrong = false) {
    const status = part("status", "");
    status.textContent = text;
    status.classList.toggle("lv-failed", wrong);
  }

  // Shows a run of the engine in the place of the one before; the cursor stays with the same sentence.
  replace(found, same) {
    this.found = found;
    this.number += 1;
    const { number, badge, writing } = this;
    this.run = new BrowserRun(this.stored, found, { number, badge, writing, off: this.page.off });
    if (!same) this.at = { step: 0, source: null, chosen: NONE };
    this.at.step = Math.min(this.at.step, this.steps - 1);
    this.drawTiles("");
    const all = this.continues ? [found.text] : [this.text, found.text];
    const texts = all.filter(Boolean).map((text) => element("p", "", text, { dir: "auto" }));
    part("texts", "").replaceChildren(...texts);
    const gone = found.off.map((each) => each.split("."));
    const named = gone.map(([kind, layer, head]) => `Off: ${kind}, layer ${+layer + 1}, head ${+head + 1}.`);
    if (this.before) named.push(effect(this.before, found.text, this.page.writes));
    part("changes", "").replaceChildren(...named.map((text) => element("p", "", text)));
    const logs = found.steps.map(({ log }) => log);
    const doubted = found.forced || gone.length ? "" : doubt(logs, this.page.usual);
    const notes = [doubted, this.continues ? "" : together(this.text)].filter(Boolean);
    part("doubt", "").replaceChildren(...notes.map((text) => element("p", "", text)));
    this.begin();
    this.write();
  }

  // A head that is switched off, or on again, is a run of its own.
  hear(event) {
    super.hear(event);
    if (!event.off || !this.engine) return;
    const head = event.off.join(".");
    const off = this.off.includes(head) ? this.off.filter((each) => each !== head) : [...this.off, head];
    this.translate({ off });
  }

  get more() {
    const { text, target, off } = this;
    return `&${new URLSearchParams({ text, ...(target && { target }), ...(off.length && { off }) })}`;
  }

  // What an address asks for beyond a place; null if it is the stored run.
  static asked(hash, { text: usual }) {
    const said = new URLSearchParams(hash.slice(1));
    const [text, target] = [said.get("text") ?? usual, said.get("target") ?? ""];
    const off = (said.get("off") ?? "").split(",").filter((each) => /^(encoder|decoder|cross)\.\d+\.\d+$/.test(each));
    return { text, target, off };
  }

  // Repeats the runs of the Python package, and says what was found.
  async compare() {
    const found = [];
    for (const each of this.page.references) {
      found.push(differences(await this.engine.ask({ text: each.text, off: [], quiet: true }), each));
    }
    const most = (what) => Math.max(...found.map((each) => each[what]));
    const passed = most("logs") <= MOST_APART && most("weights") <= MOST_APART;
    const largest = `weights ${most("weights").toExponential(1)}, log p ${most("logs").toExponential(1)}`;
    const runs = `compared here with ${found.length} runs of the Python package: largest difference ${largest}`;
    const title = `Computed in your browser by the textbook formula; ${runs}.`;
    this.badge = { passed, text: passed ? "✓ compared" : "✗ differs", title };
    part("digest", "").textContent = `${this.badge.text}: ${title}`;
    part("digest", "").classList.toggle("lv-failed", !passed);
    if (this.found) this.replace(this.found, true);
  }
}

async function open() {
  document.documentElement.classList.add("living");
  const page = { slow: "", ...JSON.parse(part("page", "").textContent) };
  const packed = part("run", "");
  const stored = await unpacked(packed.textContent);
  const living = new Live(stored, page, null);
  living.start(`#${packed.dataset.place}`);
  const asked = Live.asked(location.hash, living);
  await new Promise((go) => requestAnimationFrame(() => setTimeout(go))); // the picture first
  const engine = new Engine(await started());
  const [weights, pieces] = await Promise.all([file("model.safetensors"), file(page.pieces)]);
  const { config, tables } = page;
  const byteLevel = page.pieces === "pieces.json";
  const load = { config, tables, weights, pieces, byteLevel, kernel: bytesOf(page.kernel) };
  page.slow = await engine.ask({ load }, [weights.buffer]);
  living.engine = engine;
  const hash = location.hash;
  await living.translate(living.asked ?? asked);
  living.go(hash);
  living.tell();
  await living.compare();
  document.documentElement.dataset.engine = "ready";
}

open().catch((error) => {
  part("status", "").textContent = window.DecompressionStream ? error.message : TOO_OLD;
  console.warn("live page", error);
});
