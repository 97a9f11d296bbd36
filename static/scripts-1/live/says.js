// What is said of a head's weights, in the words of `explorer/figures/base/captions.py`.

const [RESTS_FROM, STRONGEST] = [0.5, 5];

export function percent(share) {
  const value = 100 * share;
  if (value > 0 && value < 0.1) return "<0.1 %";
  if (value >= 99.5 && share < 1) return `${Math.floor(10 * value) / 10} %`;
  return `${value.toFixed(value > 0 && value < 1 ? 1 : 0)} %`;
}

export const phrase = ([layer, head]) => `head ${head + 1} of layer ${layer + 1}`;

const best = (row) => row.indexOf(Math.max(...row));

// That the model is less sure of what it wrote than it usually is, in the words of `explorer/app/shell/doubt.py`; empty if
// it is as sure as usual, or nobody measured what is usual. `logs`: log-probability of each token that it wrote.
export function doubt(logs, usual) {
  const mean = logs.reduce((sum, log) => sum + log, 0) / logs.length;
  if (usual === null || mean >= usual) return "";
  const [found, least] = [mean, usual].map((log) => percent(Math.exp(log)));
  return `This translation may be wrong: ${found} for a token, where over ${least} is usual.`;
}

// What heads that are off have changed: `before` is what the model writes with all its heads, and `what` its name.
export function effect(before, after, what) {
  if (before === after) return `The ${what} stays the same.`;
  return `The ${what} changes; with every head it is “${before}”.`;
}

// Whether a text is more than one sentence, which the app translates each on its own; empty if it is one. A short word
// with a capital before a full stop, such as "Mr.", ends none.
export function together(text) {
  const ends = text.match(/(?:[!?…]|(?<!(?<!\p{L})\p{Lu}\p{L}{0,2})\.)["'”’)]*\s+(?=\p{Lu})/gu) ?? [];
  return ends.length ? `These ${ends.length + 1} sentences are one run here; the app makes a run of each.` : "";
}

// Sentences and notes of the rows of a map, and its text alternative; `off` ends a sentence about a head that is off.
export function said(weights, { openings, keys, special, off }, feed) {
  const [layer, head] = feed.head;
  const { rows, columns } = feed.names;
  const role = feed.choice.roles[layer]?.[head];
  const name = phrase(feed.head) + (role ? ` (${role})` : "");
  const lines = rows.map((_, i) => weights.slice(i * columns.length, (i + 1) * columns.length));
  const sentence = (row, i) => {
    if (feed.off) return [...openings[i], off.replace("{name}", phrase(feed.head))];
    const on = best(row);
    return [...openings[i], `, ${name} puts ${percent(row[on])} of its weight on `, keys[on], "."];
  };
  const note = (row) => {
    const rests = Object.keys(special).find((at) => row[at] > RESTS_FROM);
    return rests && `over half of this row's weight lies on ${special[rests]}, not on a word`;
  };
  const notes = feed.off ? [] : lines.map(note);
  const order = weights.map((_, i) => i).sort((a, b) => weights[b] - weights[a] || a - b);
  const strongest = order.slice(0, STRONGEST).filter((i) => weights[i] > 0);
  const cell = (i) => {
    const [row, column] = [rows[Math.floor(i / columns.length)], columns[i % columns.length]];
    return `${row}, ${column}: ${weights[i].toFixed(2)}`;
  };
  const title = `${feed.alt.split(",")[0]}, ${phrase(feed.head)}`;
  const alt = `${title}: ${rows.length} queries by ${columns.length} keys. Strongest links: `;
  return { sentences: lines.map(sentence), notes, alt: `${alt}${strongest.map(cell).join("; ") || "none"}.` };
}
