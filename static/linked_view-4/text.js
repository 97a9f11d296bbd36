// Texts of the view. Pure functions.

const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "#": "&#35;" };
const SIGNS = Object.fromEntries(Object.entries(ESCAPES).map(([sign, escape]) => [escape, sign]));

// A text that plotly.js shows as it is.
export const escaped = (text) => text.replace(/[&<>#]/g, (sign) => ESCAPES[sign]);

// The text that was escaped for plotly.js.
export const plain = (text) => text.replace(/&(amp|lt|gt|#35);/g, (escape) => SIGNS[escape]);

// At most so many letters, the last of them an ellipsis if some are missing.
export const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// Writes the tokens of a position for `{reads}`, `{predicts}` and `{source}`.
export function filled(text, names, position) {
  return text.replace(/\{(reads|predicts|source)\}/g, (_, name) => names[name][position]);
}

// Where the cursor stands, for those who hear it.
export function placeName(cursor, { step, source }, names) {
  if (cursor === "step") return `Step ${step + 1}: reads ${names.reads[step]}, predicts ${names.predicts[step]}.`;
  return `Source token ${source + 1}: ${names.source[source]}.`;
}

// How far the cursor has come: `step 2 of 5`.
export function countName(cursor, position, length) {
  return `${cursor === "step" ? "step" : "source token"} ${position + 1} of ${length}`;
}
