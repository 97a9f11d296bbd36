// A place in a run as an address says it, `#step=7&cross=3.5`: counted from 1, as in the app. Pure functions.

import { NONE, runs } from "../linked_view/together.js";

const position = (text, length) => (/^\d{1,6}$/.test(text ?? "") && text >= 1 && text <= length ? text - 1 : null);

// Whether a file holds the map of a head: of a long run it holds some, else all.
export const has = (whole, head) => !whole || whole.some((each) => `${each}` === `${head}`);

// Positions that are looked at as one, `3-5.8`, from 0; one alone is none, and so is what is written wrongly.
export function positions(text, length) {
  const ends = (text ?? "").split(".").map((run) => run.split("-").map((end) => position(end, length)));
  if (ends.some((run) => run.length > 2 || run.includes(null) || run.at(-1) < run[0])) return [];
  const found = ends.flatMap(([first, last = first]) => Array.from({ length: last - first + 1 }, (_, i) => first + i));
  const several = [...new Set(found)].toSorted((one, other) => one - other);
  return several.length > 1 ? several : [];
}

// Positions as an address writes them.
export function ranges(places) {
  return runs(places)
    .map(([first, count]) => (count > 1 ? `${first + 1}-${first + count}` : first + 1))
    .join(".");
}

function chosenIn(asked, steps, sources) {
  const together = asked.get("together") === "sum" ? "sum" : "mean";
  return { steps: positions(asked.get("steps"), steps), sources: positions(asked.get("sources"), sources), together };
}

// The cursor and the heads that an address names; what it says wrongly is left out.
export function placeIn(hash, kinds, { steps, names }) {
  const asked = new URLSearchParams(hash.slice(1));
  const heads = {};
  for (const [kind, { size, whole }] of Object.entries(kinds)) {
    const found = (asked.get(kind) ?? "").split(".").map((text, i) => position(text, size[i] ?? 0));
    const there = found.length === 2 && !found.includes(null);
    if (there && has(whole, found)) heads[kind] = found;
  }
  const [step, source] = [position(asked.get("step"), steps), position(asked.get("source"), names.source.length)];
  if ((steps ? step : source) === null) return { heads, at: source === null ? {} : { source } };
  return { heads, at: { step: step ?? 0, source, chosen: chosenIn(asked, steps, names.source.length) } };
}

// The address of a place, in a run of so many steps.
export function written({ step, source, chosen = NONE }, heads, length) {
  const places = Object.entries(heads).map(([kind, head]) => `${kind}=${head.map((each) => each + 1).join(".")}`);
  const { steps, sources, together } = chosen;
  const several = { steps: ranges(steps), sources: ranges(sources), together: together === "sum" && together };
  const told = Object.entries(several).filter(([, text]) => text).map(([name, text]) => `${name}=${text}`);
  const at = [length > 0 && `step=${step + 1}`, source !== null && `source=${source + 1}`].filter(Boolean);
  return `#${[...at, ...told, ...places].join("&")}`;
}
