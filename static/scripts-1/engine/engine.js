// Answers messages of the page: loads a model, then translates, or continues texts. Runs in a worker, or in the page
// where none can be.

import { ByteLevel } from "./bytelevel.js";
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

  async load({ config, weights, pieces, byteLevel, tables, kernel }) {
    this.tokenizer = byteLevel
      ? new ByteLevel(JSON.parse(new TextDecoder().decode(pieces)))
      : new Tokenizer(pieces, tables);
    this.trims = !byteLevel; // a byte-level text is shown as it was typed
    const memory = await Memory.of(kernel).catch(() => null);
    this.model = new Model(config, tensorsOf(weights), memory);
    return memory ? "" : SLOW;
  }

  // Most tokens a side.
  get most() {
    return Math.min(MOST, this.model.config.max_positions ?? MOST);
  }

  // The pieces of a text that the tokenizer has split, if they and one more token are not too many.
  read(text, what) {
    const read = this.tokenizer.read(text);
    const count = read.ids.length + 1;
    if (count > this.most) throw new Refused(`The ${what} has ${count} tokens; this page takes at most ${this.most}.`);
    return read;
  }

  // The pieces of a text as the model reads it, with the end token.
  cut(text, what) {
    const { eos_id: eos = 2 } = this.model.config;
    const read = this.read(text, what);
    if (!read.ids.length) throw new Refused(`The ${what} is empty; type a sentence.`);
    return { ...read, ids: [...read.ids, eos], pieces: [...read.pieces, END] };
  }

  // Only the newest question that a reader asked is answered; `quiet` ones are the page's own.
  async answer({ id, quiet, ...question }) {
    if (!quiet) this.asked = id;
    const start = performance.now();
    const heard = async (steps, first) => {
      if (!quiet) this.tell({ id, writes: this.text(steps, first) });
      await turn();
      return quiet || this.asked === id;
    };
    const run = await (this.model.continues ? this.goneOn(question, heard) : this.translated(question, heard));
    if (run) this.send(id, { ...run, ms: performance.now() - start });
    else this.tell({ id, run }); // another sentence took its place
  }

  // A translation; a given one is followed.
  async translated({ text, target, off }, heard) {
    const { bos_id: bos = 1 } = this.model.config;
    const source = this.cut(text, "text");
    const given = target ? this.cut(target, "translation") : null;
    const limit = Math.min(Math.floor(1.5 * source.ids.length) + 10, this.most);
    const run = await this.model.translate({ ids: source.ids, given: given?.ids, off, limit }, heard);
    return run && { ...run, source, off, forced: Boolean(given), start: bos, given: given?.pieces ?? [] };
  }

  // A text that a language model goes on with; where no token begins a text, its own first token is what is read first.
  async goneOn({ text, off }, heard) {
    const { bos_id: bos, starts_with_token: begins, usual_length: usual } = this.model.config;
    const source = this.read(text, "text");
    const [start, prompt] = begins ? [bos, source.ids] : [source.ids[0], source.ids.slice(1)];
    if (start === undefined) throw new Refused("The text is empty, and this model has no start token; type a word.");
    const limit = Math.min(usual + Math.max(0, prompt.length - Math.floor(usual / 2)), this.most);
    const first = begins ? [] : [start];
    const run = await this.model.goOn({ start, prompt, off, limit }, (steps) => heard(steps, first));
    return run && { ...run, source, off, forced: false, start, first, given: source.pieces.slice(first.length) };
  }

  // Gives a run to the page, with the names of all its tokens.
  send(id, { start, given, first, ...run }) {
    const { eos_id: eos = 2, other_ends: others = [] } = this.model.config;
    const ids = run.steps.map((step) => step.id);
    const predicts = [...given, ...ids.slice(given.length).map((each) => this.piece(each))];
    const reads = [this.piece(start), ...predicts].slice(0, -1);
    for (const step of run.steps) step.names = step.best.map((each) => this.piece(each));
    const layers = Object.values(run.kinds).flatMap((kind) => kind.layers);
    const moved = layers.flatMap(({ weights, scores }) => [weights.buffer, scores.buffer]);
    const cut = !run.forced && ![eos, ...others].includes(ids.at(-1));
    const told = { reads, predicts, ids, given: given.length, cut, text: this.text(run.steps, first) };
    this.tell({ id, run: { ...run, ...told } }, moved);
  }

  piece(id) {
    return this.tokenizer.piece(id);
  }

  // What steps spell, after the ids that were read before them and belong to the text.
  text(steps, first = []) {
    const text = this.tokenizer.decode([...first, ...steps.map((step) => step.id)]);
    return this.trims ? text.trim() : text;
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
