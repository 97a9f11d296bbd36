// @ts-check
// What is told: the visitor's moves and choices, to the server and to whoever listens to the page.

import { moved, picked, sameCursor } from "./cursor.js";
import { placeName } from "./text.js";
import { alone } from "./together.js";

const [AT_ONCE, TELL_AFTER] = [20, 80];
const HEARD_WITHIN = 2000;

export class Outbox {
  constructor(view, inbox) {
    this.view = view;
    this.inbox = inbox;
    this.seq = 0;
    this.asked = null; // the choice that the server has not heard of, and its number
    this.lastPick = null;
    this.telling = null; // the timer of a move that was not sent yet
    this.repeating = null; // the timer of a message that was not answered yet
    this.patience = HEARD_WITHIN;
    this.answered = 0;
  }

  connect(send, trigger) {
    this.send = send;
    this.trigger = trigger;
  }

  // --- what the visitor does ---------------------------------------------------------------------------------

  move(change) {
    const { inbox, view } = this;
    if (!inbox.current("strips")) return;
    const next = moved(inbox.at, change, inbox.sizes());
    if (sameCursor(next, inbox.at)) return;
    if (next.step !== inbox.at.step || !inbox.bySteps) inbox.picks = {};
    inbox.at = next;
    view.update();
    if (view.controls.playing) return;
    this.tellSoon();
    this.announce();
  }

  moveTo(position) {
    this.move(this.inbox.bySteps ? { step: position } : { source: position });
  }

  moveCursor(position) {
    this.view.controls.stop();
    this.moveTo(position);
  }

  // Looks at several tokens of an axis as one; the cursor goes to one of them.
  choose(axis, tokens, at) {
    this.view.controls.stop();
    const several = tokens.length > 1 ? tokens : [];
    const name = axis === "step" ? "steps" : "sources";
    this.move({ [axis]: at, chosen: { ...this.inbox.at.chosen, [name]: several } });
  }

  // Makes one of several rows in another way: `mean` or `sum`.
  join(together) {
    this.move({ chosen: { ...this.inbox.at.chosen, together } });
  }

  // Looks at the token of the cursor alone.
  release() {
    this.move({ chosen: alone(this.inbox.at.chosen) });
  }

  // Picks a row and a column of a head, as spans of tokens; null leaves that side unchanged.
  pick(data, row, column) {
    const { inbox, view } = this;
    view.controls.stop();
    const here = inbox.position(data.rows);
    const picks = { ...inbox.picks };
    this.lastPick = { kind: data.kind, row: row ? row[0] : here, column: column ? column[0] : null };
    const change = picked(data, row, column, inbox.at, here);
    if (row || Object.keys(change).length) this.move(change);
    if (!row) inbox.picks = picks;
    if (column && data.columns === data.rows) inbox.picks[data.kind] = column[0];
    view.update();
    this.announce();
  }

  // Goes on with another token at a position: a step, or a token of the source.
  goOn(position, token) {
    this.view.controls.stop();
    this.tell({ candidate: [position, token] });
  }

  // --- messages ----------------------------------------------------------------------------------------------

  // Whether a move was not sent yet.
  get waits() {
    return this.telling !== null;
  }

  // Sends after the paint, which the server's answer must not delay: a step alone at once, quick steps as one message.
  // A move waits while the answer to the one before is on its way: if two runs of the server follow each other closely,
  // Streamlit takes the view off the page for a moment, and keys are lost.
  tellSoon() {
    const quiet = this.telling || this.repeating ? 0 : performance.now() - this.answered;
    clearTimeout(this.telling);
    const send = () => this.view.guard(() => this.repeating ?? this.tell());
    this.telling = setTimeout(send, Math.max(AT_ONCE, TELL_AFTER - quiet));
  }

  // Drops a move that was not sent yet, and stops repeating messages.
  forget() {
    clearTimeout(this.telling);
    clearTimeout(this.repeating);
    this.telling = null;
    this.repeating = null;
  }

  // The server has answered the messages up to one, perhaps with another translation.
  hear(ack, elsewhere) {
    if (ack >= this.asked?.seq || elsewhere) this.asked = null;
    if (ack >= this.seq) this.heard();
    this.seq = Math.max(this.seq, ack);
  }

  // The server has heard the last message; a move that waited for this is sent.
  heard() {
    clearTimeout(this.repeating);
    this.repeating = null;
    this.patience = HEARD_WITHIN;
    this.answered = performance.now();
    if (this.telling) this.tellSoon();
  }

  // A message may get lost on the way to the callback, so an unanswered one is repeated, at ever longer intervals.
  repeat() {
    this.repeating = setTimeout(() => this.view.guard(() => this.tell()), this.patience);
    this.patience *= 2;
  }

  // A chosen head or candidate (`{ head }`, `{ candidate }`) is sent until the server has heard of it, because a later
  // message may overtake an earlier one.
  tell(choice = null) {
    const { inbox, view } = this;
    if (!view.root) return;
    this.forget();
    this.repeat();
    this.seq += 1;
    const { seq, lastPick } = this;
    if (choice) this.asked = { choice, seq };
    const shown = { ...(view.presents && { present: view.presenting.on }), ...this.asked?.choice };
    this.send("at", { ...inbox.at, seq, trace: inbox.trace, pick: lastPick || null, ...shown });
  }

  // Says once that the picture is there, after its frame: the server then loads what the picture did not need.
  tellPainted() {
    this.inbox.spec = { ...this.inbox.spec, awaited: false };
    requestAnimationFrame(() => setTimeout(() => this.view.root && this.trigger("painted", true)));
  }

  announce() {
    const { inbox, view } = this;
    const place = { step: inbox.position("step"), source: inbox.sourceNow() };
    const { names, positions } = inbox.current("strips");
    const said = inbox.several && view.focus.data ? view.focus.sentence().join("") : view.focus.says();
    view.live.textContent = `${placeName(inbox.spec.cursor, place, names, positions)} ${said}`;
  }
}
