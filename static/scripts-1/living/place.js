// A place in a run as an address says it, `#step=7&cross=3.5`: counted from 1, as in the app. Pure functions.

const position = (text, length) => (/^\d{1,6}$/.test(text ?? "") && text >= 1 && text <= length ? text - 1 : null);

// Whether a file holds the map of a head: of a long run it holds some, else all.
export const has = (whole, head) => !whole || whole.some((each) => `${each}` === `${head}`);

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
  return { heads, at: step === null ? (source === null ? {} : { source }) : { step, source } };
}

// The address of a place.
export function written({ step, source }, heads) {
  const chosen = Object.entries(heads).map(([kind, head]) => `&${kind}=${head.map((each) => each + 1).join(".")}`);
  return `#step=${step + 1}${source === null ? "" : `&source=${source + 1}`}${chosen.join("")}`;
}
