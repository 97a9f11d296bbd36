// What a map offers to do with its head: look inside it, switch it off, or on again; save its picture.

import { closing } from "./captions.js";
import { element } from "./dom.js";
import { save } from "./export.js";
import { sign } from "./icons.js";

const LINKS = ".st-key-inside-links a";
const ACTS = {
  inside: "Look inside this head: its numbers, step by step",
  off: "Switch this head off, or on again, and translate anew",
};

// The buttons of a cell, as its feed names them; they ask for the head that the cell shows when they are clicked.
export function acts(cell, offered) {
  const { view } = cell;
  const formats = offered.filter((name) => FORMATS.includes(name));
  const menu = formats.length ? [saving(cell, formats)] : [];
  const done = offered.filter((name) => name in ACTS).map((name) => {
    const told = ACTS[name];
    const look = { type: "button", title: told, "aria-label": told, "data-act": name };
    const button = sign(element("button", "lv-act", undefined, look), name);
    button.addEventListener("click", () => view.guard(() => cell.data && DOES[name](view, cell.data)));
    return button;
  });
  return [...done, ...menu];
}

const FORMATS = ["png", "svg"];

// A menu that saves the map.
function saving(cell, formats) {
  const menu = closing(element("details", "lv-saving"));
  const told = "Save this map as a picture";
  const summary = sign(element("summary", "lv-act", undefined, { title: told, "aria-label": told }), "save");
  const row = element("div", "lv-saving-row");
  row.append(
    ...formats.map((format) => {
      const button = element("button", "lv-button", format.toUpperCase(), { type: "button" });
      const made = () => save({ figure: JSON.stringify(cell.forFile()), name: cell.fileName }, format, row);
      button.addEventListener("click", () => cell.view.guard(() => cell.live && made()));
      return button;
    }),
  );
  menu.append(summary, row);
  return menu;
}

const DOES = {
  inside: (_view, { kind }) => document.querySelectorAll(LINKS).forEach((link) => leads(link, kind) && link.click()),
  off: (view, { kind, head }) => view.tell({ off: [kind, ...head] }),
};

const leads = (link, kind) => link.textContent.trim().endsWith(`: ${kind}`);
