// @ts-check
// Spans [start, stop) of tokens: each row or column of a figure stands for one span. Pure functions; -1 means none.

export const inside = (span, token) => token !== null && span[0] <= token && token < span[1];

// The row or column that holds a token.
/** @type {(spans: [number, number][], token: number | null) => number} */
export const holding = (spans, token) => spans.findIndex((span) => inside(span, token));

// The last row or column that starts at or before a token.
/** @type {(spans: [number, number][], token: number) => number} */
export const reached = (spans, token) => spans.filter(([start]) => start <= token).length - 1;

// All tokens of a figure as one span.
/** @type {(spans: [number, number][]) => [number, number]} */
export const whole = (spans) => [spans[0][0], spans[spans.length - 1][1]];

// The spans under the pointer, by axis. In self-attention both sides are the same axis, and the row counts.
export function pointed({ rows, columns }, row, column) {
  return { [columns]: column, ...(row && { [rows]: row }) };
}

const beginning = (spans, span) => (span ? holding(spans, span[0]) : -1);

// The row and column of a figure that the pointer marks. The figure under the pointer (`own`) gets places as row and
// column, other figures get them by axis; in self-attention, other figures mark only the row.
/** @typedef {{ rows: string, columns: string, spans: import("./feeds.js").Spans }} Axes */
/** @type {(feed: Axes, places: any, own: boolean) => { row: number, column: number }} */
export function marked({ rows, columns, spans }, places, own) {
  if (!places) return { row: -1, column: -1 };
  const row = own ? places.row : places[rows];
  const column = own ? places.column : columns === rows ? null : places[columns];
  return { row: beginning(spans.rows, row), column: beginning(spans.columns, column) };
}
