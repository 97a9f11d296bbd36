// @ts-check
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
