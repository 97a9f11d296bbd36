// @ts-check
// What arrives: the figures (feeds), what the page says of the view (the spec), and the cursor. Who draws asks here.

import { heard, sourceAt, unheard } from "./cursor.js";
import { NONE } from "./together.js";

export class Inbox {
  constructor(view) {
    this.view = view;
    this.mounts = new Map();
    /** @type {Record<string, import("./feeds.js").Feed & { name: string, trace: string }>} */
    this.feeds = {};
    /** @type {?import("./feeds.js").ProofFeed} */
    this.proof = null;
    /** @type {any} */
    this.spec = null;
    /** @type {?string} */
    this.trace = null;
    this.at = { step: 0, source: null, chosen: NONE };
    this.picks = {};
  }

  // Takes a figure, or the proof of figures, which comes after them.
  receive(data) {
    if (data.draw === "proof") this.proof = data;
    else this.feeds[data.name] = data;
    const proved = this.prove();
    if (data.draw === "proof") {
      if (this.view.root) this.view.reword(proved);
      return;
    }
    if (this.view.root) this.view.suit(data);
    this.view.draw();
  }

  // Puts the proof into the figures that wait for it, and returns their names. One that came with a badge of its own,
  // as of another head or another measure, keeps it. A figure stays the same object, so that it is not drawn again.
  prove() {
    const { proof } = this;
    if (!proof) return [];
    const ofRun = Object.values(this.feeds).filter((feed) => feed.trace === proof.trace);
    const waiting = ofRun.filter((feed) => "badge" in feed && feed.badge?.waits);
    const names = waiting.map((feed) => feed.name).filter((name) => proof.badges[name]);
    for (const name of names) Object.assign(this.feeds[name], { badge: proof.badges[name] });
    return names;
  }

  // Takes what the page says of the view, and returns what leaves its place. Where the page grows above the view,
  // Streamlit mounts it at its old place and its new one for a moment, in any order: whichever place is left last, the
  // view goes on in one that is still there.
  show(mount) {
    const { parentElement } = mount;
    this.mounts.set(parentElement, mount);
    this.showIn(mount);
    return () => {
      this.mounts.delete(parentElement);
      if (this.view.host !== parentElement) return;
      this.view.leave();
      const left = [...this.mounts.values()].findLast((other) => other.parentElement.isConnected);
      if (left) this.showIn(left);
    };
  }

  showIn({ data, parentElement, setStateValue, setTriggerValue }) {
    const { view } = this;
    const { outbox } = view;
    outbox.connect(setStateValue, setTriggerValue);
    const elsewhere = view.host !== parentElement;
    const untold = elsewhere && unheard({ seq: outbox.seq, trace: this.trace, untold: outbox.waits }, data);
    if (elsewhere && !untold) this.trace = null;
    const rebuilt = elsewhere || `${this.spec.plots}` !== `${data.plots}`;
    if (rebuilt) view.build(parentElement, data);
    this.spec = data;
    const news = [rebuilt, this.hear(data), view.recolour()];
    if (news.some(Boolean)) view.draw();
    else if (data.awaited) view.tellReady();
    if (untold) outbox.tellSoon();
  }

  // Takes the server's cursor, and returns whether there is something to draw.
  hear(data) {
    const { controls, outbox, presenting } = this.view;
    const elsewhere = data.trace !== this.trace;
    const news = data.ack >= outbox.seq || elsewhere;
    outbox.hear(data.ack, elsewhere);
    const busy = Boolean(controls.playing || outbox.waits);
    const { at, changed } = heard({ at: this.at, seq: outbox.seq, trace: this.trace, busy }, data);
    if (elsewhere) {
      controls.stop();
      outbox.forget();
      this.picks = {};
      this.trace = data.trace;
    }
    this.at = at;
    if (news) presenting.show(Boolean(data.present));
    return changed;
  }

  // A feed, if it belongs to the translation on the screen.
  /** @returns {any} */
  current(name) {
    const data = this.feeds[name];
    return data && data.trace === this.trace ? data : null;
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
    const last = (this.current("strips")?.steps || 1) - 1;
    return { step: Math.min(this.at.step, last), source: this.sourceNow() }[axis] ?? null;
  }

  // The tokens of an axis that are looked at as one.
  chosen(axis) {
    return this.at.chosen[axis === "step" ? "steps" : "sources"];
  }

  // Whether several tokens are looked at as one.
  get several() {
    const { steps, sources } = this.at.chosen;
    return steps.length + sources.length > 0;
  }

  // The highlighted key: the picked one, or the one at the other cursor; null in self-attention.
  key({ kind, rows, columns }) {
    return this.picks[kind] ?? (columns === rows || this.unmarked ? null : this.position(columns));
  }

  // Whether the source token is not marked: it follows the step, and a question is open that it would answer.
  get unmarked() {
    return this.bySteps && this.at.source === null && Boolean(this.current("strips")?.silent);
  }
}
