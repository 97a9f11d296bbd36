// How large a map is drawn in the room it has: square cells, and labels as large as the cells allow. Pure functions.

export const FONTS = [15, 14, 13, 12, 11, 10, 9, 8];

// Px: the height of an axis title, the space between labels and cells, and the edge of the figure.
const [TITLE, AFTER, EDGE] = [18, 5, 4];

// A label needs this share of its font size along the axis; closer labels would touch, so some are left out.
const [SPARSE, DENSE] = [0.95, 0.8];

// A small map is at most this share as high as the large one.
const SMALLER = 0.86;

// Bars under the small maps leave less of the window empty than bars beside them: the small maps may be smaller there.
const FULLER = 0.8;

// A map's margins, cells and size for one font size. `widest` holds the widest label of each axis in multiples of the
// font size, `right` the px kept free for row sums.
function sized(font, { rows, columns, widest, room, right = EDGE, largest = Infinity, factor = 1 }) {
  const before = TITLE * factor + AFTER;
  const margin = { l: before + widest.rows * font, t: before + widest.columns * font };
  Object.assign(margin, { r: right, b: EDGE });
  const [wide, high] = [room[0] - margin.l - margin.r, room[1] - margin.t - margin.b];
  return { font, margin, cell: Math.min(wide / columns, high / rows, largest) };
}

// The largest font whose labels all fit; if none does, the smallest one with every second, third, … label. Cells
// shrink down to `smallest` px; a map with more cells is larger than its room and scrolls.
export function fitted(map) {
  const fonts = map.fonts ?? FONTS;
  const options = fonts.map((font) => sized(font, map));
  const found = options.find(({ cell, font }) => cell >= SPARSE * font) ?? options[options.length - 1];
  const scrolls = found.cell < map.smallest;
  const cell = scrolls ? map.smallest : found.cell;
  const { l, t, r, b } = found.margin;
  const size = [l + cell * map.columns + r, t + cell * map.rows + b];
  return { ...found, cell, scrolls, size, every: Math.ceil((DENSE * found.font) / cell) };
}

// Every n-th of a list, the first included.
export const thinned = (list, every) => list.filter((_, i) => i % every === 0);

// An axis title in the room it has: whole, without what stands in brackets, or only the part before the colon.
export function titleFor(text, room, widthOf) {
  const options = [text, text.replace(/ \(.*\)$/, ""), text.replace(/:.*$/, "")];
  return options.find((option) => widthOf(option) <= room) ?? options[options.length - 1];
}

// The small maps and the next token beside the large map, which is `main` px wide: either the small maps side by side
// with the next token under them (`over`), or all in one row, whichever leaves the small maps larger.
// `least`: the least width and height of the bars for the next token; `around`: the px of titles and colours over and
// under a small map; `head`: the width that its title takes, given if there is so much. Returns the rooms in px,
// [width, height].
export function spread({ width, height, main, gap, least, around, head = 0 }) {
  const right = width - main - gap;
  const highest = SMALLER * (height - around);
  const over = Math.min((right - gap) / 2, height - gap - least[1] - around, highest);
  const wide = (right - least[0] - 2 * gap) / 2;
  const beside = Math.min(wide, highest);
  if (over >= FULLER * beside) {
    return { over: true, side: [(right - gap) / 2, over], next: [right, height - gap - over - around] };
  }
  const side = Math.min(wide, Math.max(beside, head));
  return { over: false, side: [side, highest], next: [right - 2 * side - 2 * gap, height] };
}
