// @ts-check
// Decodes numbers from Python, and finds the largest. Pure functions.

// The bytes of a text in base64.
export function bytesOf(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i += 1) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

// Decodes an array in plotly.js's base64 form; returns anything else unchanged.
export function decode(values) {
  if (!values || values.bdata === undefined) return values;
  const bytes = bytesOf(values.bdata);
  return values.dtype === "f4" ? new Float32Array(bytes.buffer) : bytes;
}

// A weight as a share of the full colour, from 0 to 1, on a scale of colours.
export function strength(weight, scale) {
  const clipped = Math.min(Math.max(weight, 0), 1);
  if (scale === "log") return 1 + Math.log10(Math.max(clipped, 1e-3)) / 3;
  return scale === "sqrt" ? Math.sqrt(clipped) : clipped;
}

// The largest positive weights, largest first, with the number and the sum of all others.
export function strongest(entries, limit) {
  const sorted = entries.filter(({ weight }) => weight > 0).sort((one, other) => other.weight - one.weight);
  const others = sorted.slice(limit);
  const rest = others.reduce((sum, { weight }) => sum + weight, 0);
  return { listed: sorted.slice(0, limit), more: others.length, rest };
}
