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

// The cursor's position in words, for screen readers.
export function placeName(cursor, { step, source }, names) {
  if (cursor === "step") return `Step ${step + 1}: reads ${names.reads[step]}, predicts ${names.predicts[step]}.`;
  return `Source token ${source + 1}: ${names.source[source]}.`;
}

// How far the cursor has come: `step 2 of 5`.
export function countName(cursor, position, length) {
  return `${cursor === "step" ? "step" : "source token"} ${position + 1} of ${length}`;
}
