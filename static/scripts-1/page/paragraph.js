// A text of several sentences with the shown one marked, and the translation of the whole, which can be copied. A click
// or Alt with an arrow key shows another sentence.

import { button, element } from "../linked_view/dom.js";

const STYLE = new URL("paragraph.css", import.meta.url);
const WHOLE = -1;
const FIRST_WAIT = 4_000; // ms
const NEXT = { ArrowLeft: -1, ArrowRight: 1 };
const shown = new WeakMap();

document.head.append(element("link", "", undefined, { rel: "stylesheet", href: STYLE }));

// Sentences in one line, with spaces where their script has them.
const TIGHT = /[。！？｡．]["'”’»›)\]」』】]*$/u;
export const joined = (parts) => parts.reduce((all, part) => `${all}${TIGHT.test(all) ? "" : " "}${part}`);

// The sentence after a key, or null if there is none or the key is no such key.
export function after({ key, altKey, ctrlKey, metaKey, shiftKey }, at, count) {
  const next = at + (altKey && !ctrlKey && !metaKey && !shiftKey ? NEXT[key] ?? NaN : NaN);
  return next >= 0 && next < count ? next : null;
}

class Paragraph {
  constructor(host) {
    this.root = element("section", "par", undefined, { "aria-label": "The text, sentence by sentence" });
    host.replaceChildren(this.root);
    this.pressed = (event) => this.press(event);
    document.addEventListener("keydown", this.pressed);
  }

  show({ data, setTriggerValue }) {
    if (data.at !== this.data?.at) this.wanted = data.at;
    Object.assign(this, { data, send: setTriggerValue });
    const { sentences, translations, at } = data;
    const focused = this.root.contains(document.activeElement);
    const text = element("p", "par-text", undefined, { title: "Alt + ← → shows the sentence before or after" });
    sentences.forEach((each, i) => text.append(this.sentence(each, i, at), " "));
    this.root.replaceChildren(text, this.foot());
    if (translations) this.root.insertBefore(this.translation(), this.root.lastChild);
    this.reveal(text);
    if (focused) this.root.querySelector(".par-sentence[aria-current]")?.focus({ preventScroll: true });
    const state = JSON.stringify([at, translations]);
    if (state === this.state) return; // asked for already, and not there yet
    this.state = state;
    clearTimeout(this.later);
    if (translations?.includes(null)) this.ask(FIRST_WAIT);
  }

  // Asks for one translation more, or for the sentence that was clicked. What another run of the page took away is
  // asked for again, each time later: a slow server may still be at it, and would begin anew.
  ask(wait) {
    this.send("more", true);
    this.wait(wait);
  }

  wait(time) {
    clearTimeout(this.later);
    this.later = setTimeout(() => {
      const { at, translations } = this.data;
      if (this.root.isConnected && (at !== this.wanted || translations?.includes(null))) this.ask(2 * time);
    }, time);
  }

  sentence(text, i, at) {
    // No button: its text would not run on from line to line.
    const node = element("span", "par-sentence", text, { role: "button", tabindex: "0", dir: "auto" });
    if (i === at) node.ariaCurrent = "true";
    node.addEventListener("click", () => this.go(i));
    node.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation();
      this.go(i);
    });
    return node;
  }

  translation() {
    const { translations, at } = this.data;
    const look = { dir: "auto", role: "group", tabindex: "0", "aria-label": "Translation of the text" };
    const parts = translations.flatMap((each, i) => [
      i && !TIGHT.test(translations[i - 1] ?? "") ? " " : "",
      element(i === at ? "mark" : "span", "", each ?? "…"),
    ]);
    return element("div", "par-translation", parts, look);
  }

  foot() {
    const { sentences, translations, at } = this.data;
    const said = at === WHOLE ? "All sentences as one run" : `Sentence ${at + 1} of ${sentences.length}`;
    const foot = element("div", "par-foot", element("span", "par-count", said));
    if (at !== WHOLE) foot.append(button("par-button", "All as one run", () => this.go(WHOLE)));
    if (!translations) return foot;
    const copy = button("par-button", "Copy the translation", () => this.copy(copy));
    copy.disabled = translations.includes(null);
    foot.append(copy);
    return foot;
  }

  go(at) {
    if (at === this.data.at) return;
    this.wanted = at;
    this.send("at", at);
    this.wait(FIRST_WAIT);
  }

  press(event) {
    const { sentences, at } = this.data ?? { sentences: [] };
    const next = after(event, at, sentences.length);
    if (next === null || event.defaultPrevented || !this.root.isConnected) return;
    event.preventDefault();
    this.go(next);
  }

  // Without a safe connection, browsers copy only what is selected.
  async copy(copy) {
    const text = joined(this.data.translations);
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      getSelection().selectAllChildren(this.root.querySelector(".par-translation"));
      document.execCommand("copy");
    }
    copy.textContent = "Copied";
  }

  // Scrolls the text, and nothing else, until the shown sentence is seen.
  reveal(text) {
    for (const [frame, name] of [[text, "[aria-current]"], [this.root.querySelector(".par-translation"), "mark"]]) {
      const node = frame?.querySelector(name);
      if (node) frame.scrollTop = node.offsetTop - (frame.clientHeight - node.offsetHeight) / 2;
    }
  }

  leave() {
    clearTimeout(this.later);
    document.removeEventListener("keydown", this.pressed);
  }
}

export function show(part) {
  const host = part.parentElement;
  if (!shown.has(host)) shown.set(host, new Paragraph(host));
  const paragraph = shown.get(host);
  paragraph.show(part);
  return () => {
    paragraph.leave();
    shown.delete(host);
  };
}
