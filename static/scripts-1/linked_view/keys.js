// @ts-check
// The keyboard: what each key does, the list of keys, and keys pressed while nothing else on the page uses them.

import { clamp, command, destination, nextColumn } from "./cursor.js";
import { button, element } from "./dom.js";
import { ranged } from "./together.js";

const PRESENTS = "p";
// Each with what it does; `{place}` is what the cursor walks over.
const LIST = [
  ["Left Right", "one {place} back, one {place} forward"],
  ["Up Down", "previous key token, next key token"],
  ["Home End", "first {place}, last {place}"],
  ["Shift+Left Shift+Right", "several tokens as one; so do Shift+click, Ctrl+click and dragging over tokens"],
  ["Space", "play, stop"],
  [PRESENTS, "present: large type, nothing else on the screen; Page Up and Page Down go back and on, as clickers do"],
  ["?", "this list"],
  ["Esc", "close the list, leave presenting, end the tour, leave several tokens, let the key token follow the step"],
];
// What uses arrows, letters or Escape itself.
const OWN =
  "input, textarea, select, canvas, iframe, [contenteditable], [role=combobox], [role=listbox], [role=menu], " +
  "[role=radiogroup], [role=tablist], [role=slider], [role=dialog], [role=grid], [data-testid=stPopoverBody]";
const SENTENCE = "[class*=st-key-text] input";
// The keys of a clicker; while nobody presents, they scroll the page.
const PAGES = new Set(["PageUp", "PageDown"]);
const WALKS = new Set(["back", "on", "first", "last"]);
const SCROLLING = new Set(["key back", "key on", "first", "last", "play"]);

// Whether a key pressed outside the view may move it. `own`: something there uses it. `scrolls`: the page is longer
// than the window, so that the keys that scroll belong to the page; only they ask, since the answer costs a layout.
export function free(asked, there) {
  if (there.own || asked === "release") return false;
  return !(SCROLLING.has(asked) && there.scrolls);
}

export class Keys {
  constructor(view) {
    this.view = view;
    const look = { role: "dialog", "aria-label": "Keys", tabindex: "-1", hidden: "" };
    const close = button("lv-button", "Close", () => view.guard(() => this.toggle()));
    const parts = [element("div", "lv-keys-title", "Keys"), list(view), close];
    this.root = element("div", "lv-keys", parts, look);
    this.pressed = (event) => view.guard(() => this.outside(event));
    document.addEventListener("keydown", this.pressed);
  }

  get open() {
    return !this.root.hidden;
  }

  toggle() {
    this.root.hidden = this.open;
    if (this.open) this.root.focus({ preventScroll: true });
    else this.view.root.focus({ preventScroll: true });
  }

  // Handles a key that was pressed outside the view. Enter in the box of the sentence gives the keyboard to the view.
  outside(event) {
    const { view } = this;
    const { target } = event;
    if (!view.root || view.root.contains(target)) return;
    const sent = event.key === "Enter" && !event.isComposing && target.matches?.(SENTENCE);
    // not before the text is on its way: the browser styles and measures the page for it
    if (sent) setTimeout(() => view.root?.focus({ preventScroll: true }));
    if (event.defaultPrevented) return;
    const there = {
      own: target.closest?.(OWN),
      get scrolls() {
        const page = view.root.closest(".stMain");
        return !view.presenting.on && page !== null && page.scrollHeight > page.clientHeight + 1;
      },
    };
    this.press(event, (asked) => this.mayLeave(asked) || free(asked, there));
  }

  // Escape leaves what covers the page, wherever the focus is.
  mayLeave(asked) {
    return asked === "release" && (this.open || this.view.presenting.on);
  }

  // Runs the command of a key, if `may` allows it.
  /** @type {(event: any, may?: (asked: string) => boolean) => void} */
  press(event, may = () => true) {
    const asked = command(event, event.target.tagName);
    if (!asked || !this.view.inbox.length() || !may(asked)) return;
    if (PAGES.has(event.key) && !this.view.presenting.on) return;
    event.preventDefault();
    if (event.shiftKey && WALKS.has(asked)) this.extend(asked);
    else this.obey(asked);
  }

  // Goes on to a token, and takes all in between.
  extend(asked) {
    const { inbox, outbox } = this.view;
    const axis = inbox.bySteps ? "step" : "source";
    const [tokens, at] = [inbox.chosen(axis), inbox.cursor()];
    const to = clamp(destination(asked, at, inbox.length()), 0, inbox.length() - 1);
    outbox.choose(axis, ranged(tokens, at, to), to);
  }

  obey(asked) {
    const { view } = this;
    if (asked === "play") view.controls.toggle();
    else if (asked === "keys") this.toggle();
    else if (asked === "present") view.presenting.ask(!view.presenting.on);
    else if (asked === "release") this.release();
    else if (asked === "key back") this.moveKey(-1);
    else if (asked === "key on") this.moveKey(1);
    else view.outbox.moveCursor(destination(asked, view.inbox.cursor(), view.inbox.length()));
  }

  // Closes the list of keys, leaves presenting, ends the tour, leaves several tokens, or lets the source token follow
  // the step again.
  release() {
    const { view } = this;
    if (this.open) this.toggle();
    else if (view.presenting.on) view.presenting.ask(false);
    else if (view.tour.running) view.tour.end();
    else if (view.inbox.several) view.outbox.release();
    else view.outbox.move({ source: view.inbox.bySteps ? null : view.inbox.at.source });
  }

  // In self-attention the key stops at the edge of the figure; in cross-attention the cursor moves on beyond the edge.
  moveKey(by) {
    const { view } = this;
    const { data } = view.focus;
    if (!data) return;
    const { columns } = data.spans;
    const last = columns.length - 1;
    const next = nextColumn(view.inbox.key(data) === null ? null : view.focus.column(), by, columns.length);
    const nearest = clamp(next, 0, last);
    if (next === nearest || data.columns === data.rows) view.outbox.pick(data, null, columns[nearest]);
    else view.outbox.move({ [data.columns]: view.inbox.position(data.columns) + by });
  }

  leave() {
    document.removeEventListener("keydown", this.pressed);
  }
}

// The keys of a view; only a view that can present has the key for it.
function list({ presents, inbox }) {
  const place = inbox.bySteps ? "step" : "token";
  const lines = LIST.filter(([name]) => presents || name !== PRESENTS).map(([keys, does]) => {
    const names = keys.split(" ").map((key) => element("kbd", "", key));
    const text = does.replaceAll("{place}", place);
    return element("tr", "", [element("th", "", names, { scope: "row" }), element("td", "", text)]);
  });
  return element("table", "", lines);
}
