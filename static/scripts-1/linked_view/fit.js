// @ts-check
// How large a map is drawn in the room it has: square cells, and labels as large as the cells allow. Pure functions.

export const FONTS = [15, 14, 13, 12, 11, 10, 9, 8];

// Px: the height of an axis title, the space between labels and cells, and the edge of the figure.
const [TITLE, AFTER, EDGE] = [18, 5, 4];

// A label needs this share of its font size along the axis; closer labels would touch, so some are left out.
const [SPARSE, DENSE] = [0.95, 0.8];

// A small map is at most this share as high as the large one, and at least so many px wide.
const SMALLER = 0.86;
const LEAST = 220;

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

// How the four pictures lie: the next token under the small maps (`over`), or all in one row (`beside`), if that leaves
// the small maps larger; either only if they get at least `LEAST` px of width and three quarters of it of height. Else
// two by two (`square`), so that the page scrolls. `measure` gives the width that the large map takes in a room; `bars`
// the width that the next token needs in a row, and its height under the maps; `around` the px of titles and colours
// over and under a map. Returns the layout and the rooms in px, [width, height].
export function spread({ width, height, gap, bars, around, measure }) {
  const high = height - around;
  const found = [over, beside].map((lay) => lay({ width, height, high, gap, bars, around, measure }));
  const fits = found.filter(large);
  if (fits.length) return fits.reduce((one, other) => (larger(one, other) ? other : one));
  const half = Math.floor((width - gap) / 2);
  const room = [half, Math.max(high, half)];
  return { layout: "square", room, main: half, side: room, next: [half, Math.max(high, half)] };
}

// Whole px, as plotly.js rounds the size of a figure.
const whole = (sizes) => sizes.map(Math.floor);
const larger = (one, other) => Math.min(...other.side) > 1.1 * Math.min(...one.side);
const large = ({ side, main }) => side[0] >= LEAST && side[1] >= 0.75 * LEAST && main >= Math.min(...side);

function over({ width, height, high, gap, bars, around, measure }) {
  const room = [0.52 * width, high];
  const main = measure(room);
  const right = width - main - gap;
  const side = whole([(right - gap) / 2, Math.min(high - gap - bars[1], SMALLER * high)]);
  return { layout: "over", room, main, side, next: [right, height - gap - side[1] - around] };
}

function beside({ width, height, high, gap, bars, measure }) {
  const room = [width - 2 * LEAST - bars[0] - 3 * gap, high];
  const main = Math.min(measure(room), room[0]);
  const wide = Math.min((width - main - bars[0] - 3 * gap) / 2, Math.max(LEAST, SMALLER * high));
  const side = whole([wide, SMALLER * high]);
  return { layout: "beside", room, main, side, next: [width - main - 2 * side[0] - 3 * gap, height] };
}
