// @ts-check
// Texts for the view. Pure functions.

const SIGNS = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&#35;": "#" };

// The text that Python escaped for plotly.js, as it was.
export const plain = (text) => text.replace(/&(amp|lt|gt|#35);/g, (escape) => SIGNS[escape]);

// Cuts a text to at most `most` letters, the last of them an ellipsis.
export const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// Replaces `{reads}`, `{predicts}` and `{source}` with the tokens of a position.
/** @type {(text: string, names: import("./feeds.js").TokenNames, position: number) => string} */
export function filled(text, names, position) {
  return text.replace(/\{(reads|predicts|source)\}/g, (_, name) => names[name][position]);
}

// The cursor's position in words, for screen readers; `positions` says what one of each axis is called.
export function placeName(cursor, { step, source }, names, positions) {
  const place = `${capital(positions[cursor])} ${(cursor === "step" ? step : source) + 1}`;
  if (cursor === "source") return `${place}: ${names.source[source]}.`;
  const predicts = names.predicts.length ? `, predicts ${names.predicts[step]}` : "";
  return `${place}: reads ${names.reads[step]}${predicts}.`;
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// How far the cursor has come: `step 2 of 5`.
export const countName = (name, position, length) => `${name} ${position + 1} of ${length}`;
