// @ts-check
// The cursor's position and its moves. Pure functions. Positions count from 0; `source` is null while the source
// token follows the step; `chosen` are tokens that are looked at as one.

import { inside } from "./spans.js";
import { NONE, alone, sameChosen } from "./together.js";

const COMMANDS = new Map([
  ["ArrowLeft", "back"],
  ["ArrowRight", "on"],
  ["PageUp", "back"],
  ["PageDown", "on"],
  ["Home", "first"],
  ["End", "last"],
  ["ArrowUp", "key back"],
  ["ArrowDown", "key on"],
  ["Escape", "release"],
  [" ", "play"],
  ["p", "present"],
  ["?", "keys"],
]);

export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

export const sameCursor = (one, other) =>
  one.step === other.step && one.source === other.source && sameChosen(one.chosen, other.chosen);

// A position among so many; the first of none.
const among = (position, length) => clamp(position, 0, Math.max(length - 1, 0));

// The cursor after a change, clamped to the existing steps and source tokens. A plain move is to one token alone.
export function moved(at, change, { steps, sources }) {
  const { step, source, chosen } = { ...at, chosen: alone(at.chosen), ...change };
  return { step: among(step, steps), source: source === null ? null : among(source, sources), chosen };
}

// The cursor after a message from the server. A new translation always counts. Otherwise the message changes
// nothing if it answers an event before the last one, or if it comes while the browser is busy.
export function heard({ at, seq, trace, busy }, data) {
  const told = { step: data.step, source: data.source, chosen: data.chosen ?? NONE };
  if (data.trace !== trace) return { at: told, changed: true };
  if (busy || data.ack < seq) return { at, changed: false };
  return { at: told, changed: !sameCursor(at, told) };
}

// Whether the server's message is older than the visitor's last move in this translation. `untold`: that move was not
// sent yet. A message that answers a later event than any of this view counts as newer.
export function unheard({ seq, trace, untold }, data) {
  return data.trace === trace && (data.ack < seq || (untold && data.ack === seq));
}

// The source token: the chosen one, or the one that the step attends to most.
export function sourceAt({ step, source }, follow) {
  if (source !== null) return source;
  return follow.length ? follow[clamp(step, 0, follow.length - 1)] : 0;
}

// The keys that an element with the focus handles itself: buttons the space bar, lists of choices all but Escape.
const OWN = {
  BUTTON: (key) => key === " ",
  SUMMARY: (key) => key === " ",
  SELECT: (key) => key !== "Escape",
};

// The command of a key, or null. `on` is the tag of the element with the focus.
export function command({ key, altKey, ctrlKey, metaKey }, on = "") {
  if (altKey || ctrlKey || metaKey || OWN[on]?.(key)) return null;
  return COMMANDS.get(key) ?? null;
}

// The position to which a command moves the cursor; undefined if the command is no move. It may be out of range.
export function destination(asked, cursor, length) {
  return { back: cursor - 1, on: cursor + 1, first: 0, last: length - 1 }[asked];
}

// The column to which an arrow key moves; it may be out of range. Without a chosen key it starts at the near end.
export function nextColumn(column, by, count) {
  if (column !== null) return column + by;
  return by > 0 ? 0 : count - 1;
}

// Where playing begins: at the first position, or after the one at which it was stopped if the cursor is still there.
export const playFrom = (cursor, stopped, last) => (cursor === stopped && cursor < last ? cursor + 1 : 0);

// The cursor's change after a row and column (spans, or null) were picked; the cursor stays if the span already
// contains it. `here` is its position on the axis of the rows.
export function picked({ rows, columns }, row, column, at, here) {
  const change = {};
  if (row && !inside(row, here)) change[rows] = row[0];
  if (column && columns !== rows && !inside(column, at[columns])) change[columns] = column[0];
  return change;
}
