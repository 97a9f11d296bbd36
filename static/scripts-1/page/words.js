// The words of the glossary on a page: the first use of each is underlined, and a click on it says what it means.
// Nothing is put into the page's own text: the underlines are ranges of the browser (CSS Custom Highlight API).

import { button, element } from "../linked_view/dom.js";

const FILE = new URL("glossary.json", import.meta.url);
const STYLE = new URL("words.css", import.meta.url);
const TEXTS = ":is([data-testid=stMarkdownContainer], [data-testid=stCaptionContainer], .headline p, .lv-sentence)";
const LEFT_OUT =
  ":is(a, button, code, pre, input, label, h1, svg, .katex, [role=tab], [role=dialog], .glossary, .glossary-page, " +
  ".st-key-doubt)";
const REST = 400; // ms without a change after which the page is read again

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");

// What finds each word of the glossary: [word, pattern]. Words in small letters may begin a sentence; σ is not Σ.
export function patterns(glossary) {
  return Object.entries(glossary).map(([word, { written }]) => {
    const small = written.every((each) => each.length > 1 && each === each.toLowerCase());
    const longest = [...written].sort((a, b) => b.length - a.length).map(escaped).join("|");
    return [word, new RegExp(`(?<![\\p{L}\\p{N}_])(?:${longest})(?![\\p{L}\\p{N}_])`, small ? "iu" : "u")];
  });
}

const inside = (a, b) => a !== b && a.text === b.text && a.start >= b.start && a.end <= b.end;

// The first use of each word in texts: { word, text (its number), start, end }. Of two that overlap, the longer stays.
export function firstUses(texts, glossary) {
  const found = [];
  for (const [word, pattern] of patterns(glossary)) {
    for (const [text, each] of texts.entries()) {
      const match = pattern.exec(each);
      if (!match) continue;
      found.push({ word, text, start: match.index, end: match.index + match[0].length });
      break;
    }
  }
  return found.filter((each) => !found.some((other) => inside(each, other)));
}

// The words as a page means them: one with places (`on`) holds there alone, in the place of others that are written
// alike. A place is a page, or a page and a study.
export function meant(glossary, { pathname, search }) {
  const page = pathname.split("/").pop() || "app";
  const study = new URLSearchParams(search).get("study")?.split("/").pop();
  const here = [page, `${page}/${study}`];
  const words = Object.entries(glossary);
  const own = words.filter(([, { on }]) => on?.some((place) => here.includes(place)));
  const taken = new Set(own.flatMap(([, { written }]) => written));
  const others = words.filter(([, { on, written }]) => !on && !written.some((each) => taken.has(each)));
  return Object.fromEntries([...own, ...others]);
}

class Words {
  constructor(glossary) {
    this.glossary = glossary;
    this.uses = [];
    this.box = element("div", "glossary", undefined, { role: "dialog", "aria-live": "polite", hidden: "" });
    document.body.append(this.box);
    this.observer = new MutationObserver(() => this.soon());
    this.observer.observe(document.body, { childList: true, subtree: true, characterData: true });
    document.addEventListener("click", (event) => this.clicked(event));
    document.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
    document.addEventListener("pointermove", (event) => this.over(event), { passive: true });
  }

  soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => requestIdleCallback(() => this.read()), REST);
  }

  // Reads the page, underlines, and lists the words in the menu.
  read() {
    const nodes = [...document.querySelectorAll(`.stMainBlockContainer ${TEXTS}`)].flatMap(textNodes);
    this.uses = firstUses(nodes.map((node) => node.data), meant(this.glossary, location));
    const ranges = this.uses.map(({ text, start, end }) => range(nodes[text], start, end));
    this.uses.forEach((use, i) => Object.assign(use, { range: ranges[i] }));
    globalThis.CSS?.highlights?.set("glossary", new Highlight(...ranges));
    this.list();
  }

  list() {
    const host = document.querySelector(".glossary-list");
    if (!host) return;
    const words = this.uses.map((use) => use.word).sort((a, b) => a.localeCompare(b));
    const said = words.join("\n");
    if (host.dataset.words === said) return;
    host.dataset.words = said;
    const title = element("summary", "", `Words on this page (${words.length})`);
    const opens = (word) => (event) => this.open(word, event.currentTarget.getBoundingClientRect());
    const buttons = words.map((word) => button("glossary-word", word, opens(word)));
    host.replaceChildren(title, ...buttons);
    host.hidden = !words.length;
  }

  at({ clientX, clientY, target }) {
    if (!target.closest?.(TEXTS) || target.closest(LEFT_OUT)) return undefined;
    return this.uses.find(({ range: each }) => [...each.getClientRects()].some((box) => holds(box, clientX, clientY)));
  }

  over(event) {
    document.body.classList.toggle("glossary-over", Boolean(this.at(event)));
  }

  clicked(event) {
    const seen = event.target.closest?.("[data-see]");
    if (seen) this.follow(event, seen.dataset.see);
    if (event.target.closest?.(".glossary, .glossary-list")) return;
    const use = this.at(event);
    if (use) this.open(use.word, use.range.getBoundingClientRect());
    else this.close();
  }

  open(word, place) {
    const { told, see } = this.glossary[word];
    const link = element("a", "", "Where to see it", { href: address(see), "data-see": see });
    const { backgroundColor, color } = getComputedStyle(document.querySelector(".stApp"));
    Object.assign(this.box.style, { backgroundColor, color });
    const shut = button("glossary-shut", "×", () => this.close(), { "aria-label": "Close" });
    this.box.replaceChildren(element("b", "", word), shut, element("p", "", told), link);
    this.box.hidden = false;
    const { width, height } = this.box.getBoundingClientRect();
    const below = place.bottom + height + 12 < innerHeight;
    this.box.style.left = `${Math.max(8, Math.min(place.left, innerWidth - width - 8))}px`;
    this.box.style.top = `${Math.max(8, below ? place.bottom + 6 : place.top - height - 6)}px`;
  }

  // A page of the menu opens without a new visit.
  follow(event, see) {
    const [page, view] = see.split("/");
    const own = [...document.querySelectorAll(".st-key-menu a")].find((link) => {
      const given = new URL(link.href);
      return given.pathname.split("/").pop() === (page === "app" ? "" : page) && !view;
    });
    this.close();
    if (!own || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    own.click();
  }

  close() {
    this.box.hidden = true;
  }
}

const holds = (box, x, y) => x >= box.left && x <= box.right && y >= box.top && y <= box.bottom;

function textNodes(root) {
  const found = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) if (!walker.currentNode.parentElement.closest(LEFT_OUT)) found.push(walker.currentNode);
  return found;
}

function range(node, start, end) {
  const made = new Range();
  made.setStart(node, start);
  made.setEnd(node, end);
  return made;
}

// The path and section of a place; `menu.js` adds what another page keeps when the link is touched.
export function address(see) {
  const [page, view] = see.split("/");
  return `${page === "app" ? "./" : page}${view ? `?view=${view}` : ""}`;
}

async function load() {
  document.head.append(element("link", "", undefined, { rel: "stylesheet", href: STYLE }));
  return new Words(await (await fetch(FILE)).json());
}

let words; // promised once for all pages of a visit

// Called by each page, with the place in the menu for the list.
export async function begin(host) {
  if (!host.querySelector(".glossary-list")) {
    host.replaceChildren(element("details", "glossary-list", undefined, { hidden: "" }));
  }
  words ??= load();
  (await words).soon();
}
