// Sizes and places in px, as pure functions.

export const NARROW = 520;
const LEFT = 100;
const RIGHT = 66;

// The margins of a figure; a narrow one gives less room to what stands beside its cells.
export function margins(given, width) {
  if (width >= NARROW) return given;
  return { ...given, l: Math.min(given.l, LEFT), r: Math.min(given.r, RIGHT) };
}

// The width of a figure: its own if it has one that fits, otherwise all there is, but no less than it needs.
export function size(own, width, least) {
  return Math.max(Math.min(own ?? width, width), least);
}

const MOST = 0.3;

// Where the linked view stays below the list of sections, and the room that both take. If they took too much of the
// window, the strips move out at the top, and the cursor stays.
export function stuck({ list, view, strips }, window) {
  const hidden = list + view > MOST * window ? strips : 0;
  return { top: list - hidden, room: list + view - hidden };
}

// The section that is being read: the last one whose top has reached the room; the first if none has.
export function reading(tops, room) {
  let found = 0;
  for (const [i, top] of tops.entries()) if (top !== null && top <= room + 40) found = i;
  return found;
}
