// @ts-check
// The colours of a scale: stops from 0 to 1, each `#rrggbb` or `rgba(…)`. Pure functions.

const STEPS = 256;
const known = new Map();

// Red, green, blue and opacity of a colour.
export function parts(colour) {
  if (colour.startsWith("#")) return [...[1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16)), 1];
  return colour
    .slice(colour.indexOf("(") + 1, -1)
    .split(",")
    .map(Number);
}

function mixed(a, b, share) {
  return a.map((each, i) => each + share * (b[i] - each));
}

const written = ([red, green, blue, opacity]) =>
  `rgba(${Math.round(red)},${Math.round(green)},${Math.round(blue)},${opacity.toFixed(3)})`;

// The colour at a share from 0 to 1. Of two stops at one place, the later one begins there.
export function colourAt(stops, share) {
  const next = stops.findIndex(([at]) => at > share);
  if (next === 0) return written(parts(stops[0][1]));
  if (next < 0) return written(parts(stops.at(-1)[1]));
  const [[low, from], [high, to]] = [stops[next - 1], stops[next]];
  return written(mixed(parts(from), parts(to), (share - low) / (high - low)));
}

// A function from shares to colours, with 256 steps computed once for each scale.
export function colours(stops) {
  const key = JSON.stringify(stops);
  if (!known.has(key)) {
    known.set(
      key,
      Array.from({ length: STEPS }, (_, i) => colourAt(stops, i / (STEPS - 1))),
    );
  }
  const table = known.get(key);
  return (share) => table[Math.round(Math.max(0, Math.min(1, share)) * (STEPS - 1))];
}
