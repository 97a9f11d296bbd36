// @ts-check
// Several tokens that are looked at as one: which they are, the row that stands for theirs, and what is said of it.
// Pure functions. Tokens count from 0.

import { holding } from "./spans.js";

/** @typedef {{ steps: number[], sources: number[], together: string }} Chosen */
/** @typedef {{ values: ArrayLike<number>, columns: number, channels: number }} Cells */

/** @type {Chosen} */
export const NONE = { steps: [], sources: [], together: "mean" };
// Tokens of which a sentence gives the names.
const NAMED = 8;

export const sameChosen = (one = NONE, other = NONE) => JSON.stringify(one) === JSON.stringify(other);

// No token more than that of the cursor; how rows become one stays as it was.
/** @type {(chosen?: Chosen) => Chosen} */
export const alone = ({ together } = NONE) => ({ ...NONE, together });

// All tokens from the end that stays to another one. The cursor is at the end that moves.
/** @type {(tokens: number[], at: number, to: number) => number[]} */
export function ranged(tokens, at, to) {
  const stays = tokens.length ? (at === tokens[0] ? tokens[tokens.length - 1] : tokens[0]) : at;
  const [first, last] = [Math.min(stays, to), Math.max(stays, to)];
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

// The tokens with those of a chip, or without them if they were among them.
/** @type {(tokens: number[], at: number, chip: number[]) => number[]} */
export function toggled(tokens, at, chip) {
  const before = tokens.length ? tokens : [at];
  const left = before.filter((token) => !chip.includes(token));
  const taken = left.length < before.length ? left : [...before, ...chip];
  return taken.length ? taken.toSorted((one, other) => one - other) : before;
}

// The rows that hold tokens, each once; one row alone is none.
/** @type {(spans: [number, number][], tokens: number[]) => number[]} */
export function rowsOf(spans, tokens) {
  if (tokens.length < 2) return [];
  const rows = [...new Set(tokens.map((token) => holding(spans, token)))].filter((row) => row >= 0);
  return rows.length > 1 ? rows : [];
}

// The mean or the sum of rows, column by column.
/** @type {(cells: Cells, rows: number[], together: string) => number[]} */
export function joined({ values, columns, channels }, rows, together) {
  const parts = together === "mean" ? rows.length : 1;
  return Array.from({ length: columns }, (_, column) => {
    const sum = rows.reduce((total, row) => total + values[(row * columns + column) * channels], 0);
    return sum / parts;
  });
}

// Runs of neighbours, each as its first place and how many it has.
/** @type {(places: number[]) => [number, number][]} */
export function runs(places) {
  /** @type {[number, number][]} */
  const found = [];
  for (const place of places) {
    const last = found.at(-1);
    if (last && place === last[0] + last[1]) last[1] += 1;
    else found.push([place, 1]);
  }
  return found;
}

// Names as alternating texts and tokens, the first a text: `“a”, “b” and 3 more`.
/** @type {(start: string, names: string[]) => string[]} */
function listed(start, names) {
  const shown = names.slice(0, NAMED);
  const parts = shown.flatMap((name, i) => [i ? ", " : start, name]);
  return names.length > NAMED ? [...parts, ` and ${names.length - NAMED} more`] : [...parts, ""];
}

// Alternating texts and tokens, and more of them after the last text.
/** @type {(parts: string[], more: string[]) => string[]} */
export function continued(parts, more) {
  if (!more.length) return parts;
  const [start, ...rest] = more;
  return [...parts.slice(0, -1), `${parts.at(-1)}${start}`, ...rest];
}

// What is said of the row that stands for several: alternating texts and tokens. `keys`: the names of the columns.
/** @type {(row: number[], keys: string[], names: string[], together: string, quantity: string) => string[]} */
export function told(row, keys, names, together, quantity) {
  const parts = listed(`The ${together} of ${names.length} rows: `, names);
  const largest = Math.max(...row);
  const total = row.reduce((sum, value) => sum + value, 0);
  if (!(largest > 0)) return continued(parts, [". It is 0 at every key."]);
  const of = together === "sum" ? ` of ${total.toFixed(2)}` : "";
  const number = `: ${quantity} ${largest.toFixed(2)}${of}.`;
  return continued(parts, [". It is largest at ", keys[row.indexOf(largest)], number]);
}

// What is said of several keys in a row: how much of it lies on them.
/** @type {(weights: number[], keys: string[], together: string, quantity: string) => string[]} */
export function toldOfKeys(weights, keys, together, quantity) {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  const number = together === "sum" ? `${sum.toFixed(2)} in sum` : `${(sum / weights.length).toFixed(2)} on average`;
  return continued(listed(` On ${keys.length} keys, `, keys), [`: ${quantity} ${number}.`]);
}
