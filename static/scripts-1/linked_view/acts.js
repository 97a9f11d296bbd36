// What a map offers to do with its head: look inside it, switch it off, or on again; save its picture.

import { button } from "./dom.js";
import { save } from "./export.js";
import { icon } from "./icons.js";

const LINKS = ".st-key-inside-links a";
const ACTS = {
  inside: "Look inside this head: its numbers, step by step",
  off: "Switch this head off, or on again, and run the model again",
  save: "Save this map as a picture",
};

// The buttons of a cell, as its feed names them; they ask for the head that the cell shows when they are clicked.
export function acts(cell, offered) {
  return offered.map((name) => {
    const told = ACTS[name];
    const act = () => cell.view.guard(() => cell.data && DOES[name](cell));
    return button("lv-act", icon(name), act, { title: told, "aria-label": told, "data-act": name });
  });
}

const DOES = {
  inside: ({ data: { kind } }) => document.querySelectorAll(LINKS).forEach((link) => leads(link, kind) && link.click()),
  off: ({ view, data: { kind, head } }) => view.outbox.tell({ off: [kind, ...head] }),
  save: (cell) => cell.live && save({ figure: JSON.stringify(cell.forFile()), name: cell.fileName }, "png", cell.root),
};

const leads = (link, kind) => link.textContent.trim().endsWith(`: ${kind}`);
