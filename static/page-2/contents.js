// The list of a page's sections: a click jumps to one, and the one on the screen is marked. While the sections scroll,
// the list and the cursor stay at the top.

import { element } from "../linked_view-7/dom.js";
import { reading, stuck } from "./sizes.js";

const STYLE = new URL("contents.css", import.meta.url);
const lists = new WeakMap();

document.head.append(element("link", "", undefined, { rel: "stylesheet", href: STYLE }));

class Contents {
  constructor(host) {
    this.host = host;
    this.root = element("nav", "con", undefined, { "aria-label": "Sections of this page" });
    host.replaceChildren(this.root);
    this.frame = host.closest(".st-key-linked");
    this.scroller = host.closest('[data-testid="stMain"]') ?? document.scrollingElement;
    this.follow = () => requestAnimationFrame(() => this.mark());
    this.scroller.addEventListener("scroll", this.follow, { passive: true });
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(this.root);
  }

  show({ sections }) {
    const said = JSON.stringify(sections);
    if (said !== this.said) {
      this.said = said;
      this.links = sections.map((each) => this.link(each));
      this.root.replaceChildren(...this.links);
    }
    this.fit();
    this.mark();
  }

  link({ name, text }) {
    const node = element("a", "con-link", text, { href: `#${name}`, "data-section": name });
    node.addEventListener("click", (event) => {
      event.preventDefault();
      this.section(name)?.scrollIntoView({ block: "start" });
    });
    return node;
  }

  section(name) {
    return document.querySelector(`.st-key-inside-section-${name}`);
  }

  // Tells the style sheet the heights of what stays at the top, and the colour of the page behind it.
  fit() {
    const view = this.frame?.querySelector(":scope > div:has(.lv)");
    if (!view) {
      requestAnimationFrame(() => this.host.isConnected && this.fit());
      return;
    }
    this.observer.observe(view);
    const strips = view.querySelector(".lv-strips")?.getBoundingClientRect().bottom ?? 0;
    const sizes = { list: this.root.offsetHeight, view: view.offsetHeight };
    sizes.strips = Math.max(strips - view.getBoundingClientRect().top, 0);
    const { top, room } = stuck(sizes, window.innerHeight);
    const paper = getComputedStyle(this.root).getPropertyValue("--st-background-color");
    const values = { "--con-view-top": `${top}px`, "--con-room": `${room}px`, "--con-paper": paper };
    for (const [name, value] of Object.entries(values)) this.scroller.style.setProperty(name, value);
    this.room = room;
  }

  mark() {
    if (!this.links) return;
    const tops = this.links.map((link) => this.section(link.dataset.section)?.getBoundingClientRect().top ?? null);
    const now = reading(tops, this.room ?? 0);
    for (const [i, link] of this.links.entries()) {
      if (i === now && link.ariaCurrent !== "true") this.reveal(link);
      link.ariaCurrent = i === now ? "true" : "false";
    }
  }

  // Scrolls the list, and nothing else, until a link is in its middle.
  reveal(link) {
    const middle = link.offsetLeft + link.offsetWidth / 2;
    this.root.scrollLeft = middle - this.root.clientWidth / 2;
  }

  leave() {
    this.observer.disconnect();
    this.scroller.removeEventListener("scroll", this.follow);
  }
}

export function show({ data, parentElement }) {
  if (!lists.has(parentElement)) lists.set(parentElement, new Contents(parentElement));
  const list = lists.get(parentElement);
  list.show(data);
  return () => {
    list.leave();
    lists.delete(parentElement);
  };
}
