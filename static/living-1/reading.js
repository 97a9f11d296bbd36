// Maps in words and without special tokens: weights are summed over the pieces of a key and averaged over those of a
// query (`explorer/lenses/words/reading.py`), and said as `explorer/figures/base/captions.py` says them.

const [RESTS_FROM, ASIDE_FROM, STRONGEST] = [0.5, 0.005, 5];

// The nearest number with so many decimals, of two the even one, as Python writes it.
function fixed(x, digits = 0) {
  const [scaled, halves] = [x * 10 ** digits, x * 2 ** (digits + 1)];
  const tie = scaled % 1 === 0.5 && halves % 1 === 0;
  return (tie ? (2 * Math.round(scaled / 2)) / 10 ** digits : x).toFixed(digits);
}

export function percent(share) {
  const value = 100 * share;
  if (value > 0 && value < 0.1) return "<0.1 %";
  if (value >= 99.5 && share < 1) return `${Math.floor(10 * value) / 10} %`;
  return value > 0 && value < 1 ? `${fixed(value, 1)} %` : `${fixed(value)} %`;
}

// (rows × columns) weights and colour levels of a head of (queries × keys), and each row's weight on hidden columns.
export function merged({ weights, levels }, keys, { rows, columns }) {
  const found = { weights: [], levels: [], aside: [] };
  const whole = weights.map((each) => Math.round(1000 * each)); // sums of whole numbers are exact
  const shown = new Set(columns.flatMap(([start, stop]) => Array.from({ length: stop - start }, (_, i) => start + i)));
  for (const [top, bottom] of rows) {
    const sum = (from, to, values) => {
      let total = 0;
      for (let i = top; i < bottom; i += 1) for (let j = from; j < to; j += 1) total += values[i * keys + j];
      return total;
    };
    const count = bottom - top;
    for (const [start, stop] of columns) {
      const alone = count * (stop - start) === 1;
      const weight = alone ? weights[top * keys + start] : sum(start, stop, whole) / count / 1000;
      const level = () => (sum(start, stop, levels) ? 1 + Number(fixed(254 * Math.min(weight, 1))) : 0);
      found.weights.push(weight);
      found.levels.push(alone ? levels[top * keys + start] : level());
    }
    let aside = 0;
    for (let j = 0; j < keys; j += 1) if (!shown.has(j)) aside += sum(j, j + 1, whole);
    found.aside.push(aside / count / 1000);
  }
  return found;
}

const best = (row) => row.indexOf(Math.max(...row));

// All texts that say what the numbers of a head are.
export function told({ weights, levels, aside }, { openings, keys, special }, feed) {
  const [layer, head] = feed.head;
  const [rows, columns] = [feed.names.rows, feed.names.columns];
  const role = feed.choice?.roles[layer]?.[head];
  const phrase = `head ${head + 1} of layer ${layer + 1}`;
  const name = role ? `${phrase} (${role})` : phrase;
  const lines = rows.map((_, i) => weights.slice(i * columns.length, (i + 1) * columns.length));
  const sentence = (row, i) => {
    if (feed.off) return [...openings[i], feed.sentences[0].at(-1)];
    if (!levels.slice(i * columns.length, (i + 1) * columns.length).some(Boolean)) {
      return [...openings[i], `, ${name} may attend to nothing: every key is masked.`];
    }
    const on = best(row);
    const rest = aside[i] > ASIDE_FROM ? ` (${percent(aside[i])} lies on hidden tokens).` : ".";
    return [...openings[i], `, ${name} puts ${percent(row[on])} of its weight on `, keys[on], rest];
  };
  const note = (row, i) => {
    const rests = Object.keys(special).find((at) => row[at] > RESTS_FROM);
    const whole = rests && `over half of this row's weight lies on ${special[rests]}, not on a word`;
    const hidden = aside[i] > 0 && `${percent(aside[i])} of this row lies on hidden tokens`;
    return [whole, hidden].filter(Boolean).join(" · ");
  };
  const notes = feed.off ? {} : Object.fromEntries(lines.map((row, i) => [i, note(row, i)]).filter(([, text]) => text));
  const order = weights.map((_, i) => i).sort((a, b) => weights[b] - weights[a] || a - b);
  const strongest = order.slice(0, STRONGEST).filter((i) => weights[i] > 0);
  const row = (i) => rows[Math.floor(i / columns.length)];
  const cell = (i) => `${row(i)}, ${columns[i % columns.length]}: ${fixed(weights[i], 2)}`;
  const title = `${feed.alt.split(",")[0]}, ${phrase}`;
  const alt = `${title}: ${rows.length} queries by ${columns.length} keys. Strongest links: `;
  return { sentences: lines.map(sentence), notes, alt: `${alt}${strongest.map(cell).join("; ") || "none"}.` };
}

// The feed of a map as it is read; `part` is what the file has for that reading.
export function read(feed, part, cells) {
  const figure = JSON.parse(part.figure);
  const titles = JSON.parse(feed.figure).layout.annotations;
  figure.layout.annotations = figure.layout.annotations.map((each, i) => ({ ...each, text: titles[i].text }));
  const { text, ...badge } = feed.badge;
  const changed = { ...feed, ...part.feed, title: feed.title, head: feed.head };
  changed.badge = { ...badge, text: badge.passed ? part.feed.badge.text : text };
  changed.caption = `${feed.caption.split("{step}")[0]}{step}${part.caption}`;
  return { ...changed, ...told(cells, part, changed), figure: JSON.stringify(figure) };
}
