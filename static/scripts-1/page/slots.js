// Slots of a page and the feeds that fill them. A slot shows what was fed last, whether slot or feed came first; what
// has not changed is not drawn again.

import { element } from "../linked_view/dom.js";
import { Picture } from "./picture.js";
import { fill } from "./rich.js";

const contents = new Map();
const slots = new Map();

class Slot {
  constructor(host, name) {
    Object.assign(this, { host, name, pictures: new Map() });
    this.root = element("div", "slot", undefined, { "data-slot": name });
    host.replaceChildren(this.root);
  }

  show() {
    const content = contents.get(this.name);
    if (!content || content === this.shown) return;
    this.shown = content;
    if (content.pictures) this.draw(content.pictures);
    else this.write(content.text);
  }

  write(text) {
    if (text === this.text) return;
    this.text = text;
    this.root.classList.add("slot-text");
    fill(this.root, text);
  }

  // Keeps the pictures that stay, and puts all in their order.
  draw(pictures) {
    const names = new Set(pictures.map(({ name }) => name));
    for (const [name, picture] of this.pictures) {
      if (names.has(name)) continue;
      picture.leave();
      this.pictures.delete(name);
    }
    for (const data of pictures) {
      if (!this.pictures.has(data.name)) this.pictures.set(data.name, new Picture(data.name));
      this.pictures.get(data.name).show(data);
    }
    const roots = pictures.map(({ name }) => this.pictures.get(name).root);
    if (roots.some((root, i) => this.root.children[i] !== root) || this.root.children.length !== roots.length)
      this.root.replaceChildren(...roots);
  }

  refresh(look) {
    for (const picture of this.pictures.values()) picture.refresh(look);
  }

  leave() {
    for (const picture of this.pictures.values()) picture.leave();
  }
}

export function feed({ data }) {
  for (const [name, content] of Object.entries(data.slots)) contents.set(name, content);
  for (const each of slots.values()) each.show();
  draw();
}

// Draws what has changed. The colour of the text is read once, because reading it between two drawings is slow.
function draw() {
  const first = slots.values().next().value;
  if (!first) return;
  const { color, fontFamily } = getComputedStyle(first.root);
  for (const each of slots.values()) each.refresh({ ink: color, family: fontFamily });
}

// Called again after a change of the theme.
export function slot({ data, parentElement }) {
  if (!slots.has(parentElement)) slots.set(parentElement, new Slot(parentElement, data.slot));
  const target = slots.get(parentElement);
  target.show();
  draw();
  return () => {
    target.leave();
    slots.delete(parentElement);
  };
}
