// Answers messages of the page: loads a model, then translates. Runs in a worker, or in the page where none can be.

import { Memory } from "./matrix.js";
import { Model } from "./model.js";
import { tensorsOf } from "./tensors.js";
import { Tokenizer } from "./tokenizer.js";

const MOST = 128; // tokens a side, the end token included
const END = "</s>";
const SLOW = "WebAssembly is not allowed here, so this is several times slower.";

class Refused extends Error {}

// The next turn of the event loop, in which another message is heard.
const turn = () =>
  new Promise((go) => {
    const { port1, port2 } = new MessageChannel();
    port1.addEventListener("message", () => (port1.close(), go()));
    port1.start();
    port2.postMessage(null);
  });

class Engine {
  constructor(port) {
    Object.assign(this, { port, asked: 0 });
  }

  async hear({ data }) {
    const { id } = data;
    try {
      if (data.load) this.tell({ id, ready: await this.load(data.load) });
      else await this.answer(data);
    } catch (error) {
      if (!(error instanceof Refused)) console.warn("engine", error);
      this.tell({ id, refused: error.message });
    }
  }

  tell(message, moved = []) {
    this.port.postMessage(message, moved);
  }

  async load({ config, weights, tokenizer, tables, kernel }) {
    this.tokenizer = new Tokenizer(tokenizer, tables);
    const memory = await Memory.of(kernel).catch(() => null);
    this.model = new Model(config, tensorsOf(weights), memory);
    return memory ? "" : SLOW;
  }

  // Most tokens a side.
  get most() {
    return Math.min(MOST, this.model.config.max_positions ?? MOST);
  }

  // The pieces of a text as the model reads it, with the end token.
  cut(text, what) {
    const { eos_id: eos = 2 } = this.model.config;
    const read = this.tokenizer.read(text);
    const count = read.ids.length + 1;
    if (count === 1) throw new Refused(`The ${what} is empty; type a sentence.`);
    if (count > this.most) throw new Refused(`The ${what} has ${count} tokens; this page takes at most ${this.most}.`);
    return { ...read, ids: [...read.ids, eos], pieces: [...read.pieces, END] };
  }

  // Only the newest question that a reader asked is answered; `quiet` ones are the page's own.
  async answer({ id, text, target, off, quiet }) {
    if (!quiet) this.asked = id;
    const source = this.cut(text, "text");
    const given = target ? this.cut(target, "translation") : null;
    const limit = Math.min(Math.floor(1.5 * source.ids.length) + 10, this.most);
    const start = performance.now();
    const heard = async (steps) => {
      if (!quiet) this.tell({ id, writes: this.text(steps) });
      await turn();
      return quiet || this.asked === id;
    };
    const run = await this.model.translate({ ids: source.ids, given: given?.ids, off, limit }, heard);
    if (!run) {
      this.tell({ id, run }); // another sentence took its place
      return;
    }
    const ms = performance.now() - start;
    this.send(id, { ...run, source, off, forced: Boolean(given), ms }, given?.pieces);
  }

  // Gives a run to the page, with the names of all its tokens.
  send(id, run, given) {
    const { bos_id: bos = 1, eos_id: eos = 2 } = this.model.config;
    const ids = run.steps.map((step) => step.id);
    const predicts = given ?? ids.map((each) => this.piece(each));
    const reads = [this.piece(bos), ...predicts].slice(0, -1);
    for (const step of run.steps) step.names = step.best.map((each) => this.piece(each));
    const layers = Object.values(run.kinds).flatMap((kind) => kind.layers);
    const moved = layers.flatMap(({ weights, scores }) => [weights.buffer, scores.buffer]);
    const told = { reads, predicts, ids, cut: !given && ids.at(-1) !== eos, text: this.text(run.steps) };
    this.tell({ id, run: { ...run, ...told } }, moved);
  }

  piece(id) {
    return this.tokenizer.piece(id);
  }

  text(steps) {
    return this.tokenizer.decode(steps.map((step) => step.id)).trim();
  }
}

// Answers what comes through a port.
export function serve(port) {
  const engine = new Engine(port);
  port.addEventListener("message", (event) => engine.hear(event));
  port.start?.();
  port.postMessage({});
}

if (globalThis.document) globalThis.serveEngine = serve;
else serve(globalThis);
