// What a map offers to do with its head: look inside it, switch it off, or on again.

import { element } from "./dom.js";
import { sign } from "./icons.js";

const LINKS = ".st-key-inside-links a";
const ACTS = {
  inside: "Look inside this head: its numbers, step by step",
  off: "Switch this head off, or on again, and translate anew",
};

// The buttons of a cell, as its feed names them; they ask for the head that the cell shows when they are clicked.
export function acts(cell, offered) {
  const { view } = cell;
  return offered.map((name) => {
    const told = ACTS[name];
    const look = { type: "button", title: told, "aria-label": told, "data-act": name };
    const button = sign(element("button", "lv-act", undefined, look), name);
    button.addEventListener("click", () => view.guard(() => cell.data && DOES[name](view, cell.data)));
    return button;
  });
}

const DOES = {
  inside: (_view, { kind }) => document.querySelectorAll(LINKS).forEach((link) => leads(link, kind) && link.click()),
  off: (view, { kind, head }) => view.tell({ off: [kind, ...head] }),
};

const leads = (link, kind) => link.textContent.trim().endsWith(`: ${kind}`);
