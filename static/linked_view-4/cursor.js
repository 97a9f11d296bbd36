// Where the cursor stands and where it goes. Pure functions: positions count from 0, `source` is null while it
// follows the step.

import { inside } from "./spans.js";

const COMMANDS = new Map([
  ["ArrowLeft", "back"],
  ["ArrowRight", "on"],
  ["Home", "first"],
  ["End", "last"],
  ["ArrowUp", "key back"],
  ["ArrowDown", "key on"],
  ["Escape", "release"],
  [" ", "play"],
]);

export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

export const sameCursor = (one, other) => one.step === other.step && one.source === other.source;

// The cursor after a change, within the steps and source tokens that there are.
export function moved(at, change, { steps, sources }) {
  const { step, source } = { ...at, ...change };
  return { step: clamp(step, 0, steps - 1), source: source === null ? null : clamp(source, 0, sources - 1) };
}

// The cursor after the server spoke. Another translation is always taken; otherwise an answer to an event that is
// not the last one, or one that comes while the browser is busy, changes nothing.
export function heard({ at, seq, trace, busy }, data) {
  const told = { step: data.step, source: data.source };
  if (data.trace !== trace) return { at: told, changed: true };
  if (busy || data.ack < seq) return { at, changed: false };
  return { at: told, changed: !sameCursor(at, told) };
}

// The source token: the one chosen, or the one that the step attends to most.
export function sourceAt({ step, source }, follow) {
  if (source !== null) return source;
  return follow.length ? follow[clamp(step, 0, follow.length - 1)] : 0;
}

// What a key asks for, or null. A button answers the space bar itself.
export function command({ key, altKey, ctrlKey, metaKey }, onButton = false) {
  if (altKey || ctrlKey || metaKey || (key === " " && onButton)) return null;
  return COMMANDS.get(key) ?? null;
}

// Where a command sends the cursor, of so many positions; undefined if it is no move. It may lie outside.
export function destination(asked, cursor, length) {
  return { back: cursor - 1, on: cursor + 1, first: 0, last: length - 1 }[asked];
}

// The column that an arrow key goes to, which may lie outside: from no key it enters at the near end.
export function nextColumn(column, by, count) {
  if (column !== null) return column + by;
  return by > 0 ? 0 : count - 1;
}

// Where playing goes next: after the last position it begins again.
export const playFrom = (cursor, last) => (cursor >= last ? 0 : cursor + 1);

// How a picked row and column (spans, or null) move the cursor; it stays if the span holds it already. `here` is
// the position on the axis of the rows.
export function picked({ rows, columns }, row, column, at, here) {
  const change = {};
  if (row && !inside(row, here)) change[rows] = row[0];
  if (column && columns !== rows && !inside(column, at[columns])) change[columns] = column[0];
  return change;
}
