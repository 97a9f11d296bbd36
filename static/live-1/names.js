// Tokens as they are written for people: `explorer/figures/base/labels.py` and `transformer/text/words.py`, for runs of
// the browser. Pure functions.

const [START, JOINED, LONGEST, NAME, CHIP] = ["▁", "‿", 12, 24, 24];
const SPECIAL = new Set(["<s>", "</s>", "<pad>", "<unk>", "◌"]);
const UNKNOWN = /^▁?<unk:(.+)>$/su;
const BYTE = /<0x([0-9A-F]{2})>/g;
const HIDDEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Cn}\p{Zl}\p{Zp}]/u;
const [RIGHT, LETTER] = [/[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}]/u, /\p{L}/u];

export const isSpecial = (token) => SPECIAL.has(token);

const cut = (text, most) => ([...text].length > most ? `${[...text].slice(0, most).join("")}…` : text);

function code(_, digits) {
  const value = parseInt(digits, 16);
  return value > 0x20 && value < 0x7f ? String.fromCharCode(value) : ` 0x${digits} `;
}

function visible(char) {
  return HIDDEN.test(char) ? `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}` : char;
}

function display(token) {
  const text = token.startsWith(START) ? token.slice(1) : token;
  const unknown = token.match(UNKNOWN);
  if (isSpecial(token)) return token;
  if (unknown) return `<unk> ${unknown[1]}`;
  if (token.search(BYTE) >= 0) return text.replace(BYTE, code).trim().split(/\s+/).join(" ");
  if (!text.trim()) return "◦".repeat([...text].length) || (token ? "◦" : "◌");
  return [...text.replaceAll(START, "◦")].map(visible).join("");
}

// A piece; marked if it begins without a space, where that says something.
export function piece(token) {
  const [first] = token;
  const joined = first && !isSpecial(token) && (/\d/.test(first) || first.toLowerCase() !== first.toUpperCase());
  return (joined ? JOINED : "") + display(token);
}

export const quote = (token) => cut(piece(token), NAME);

function pieces(tokens) {
  const spaced = tokens.some((token) => token.startsWith(START));
  return tokens.map((token, i) => (spaced && i ? piece(token) : display(token)));
}

// The place of each text among equal ones, from 1; null for a text that occurs once.
function occurrences(texts) {
  const seen = {};
  const places = texts.map((text) => (seen[text] = (seen[text] ?? 0) + 1));
  return texts.map((text, i) => (seen[text] > 1 ? places[i] : null));
}

// Names of tokens; repeated ones get an index. Those of an axis are cut.
export function names(tokens, most = Infinity) {
  const texts = pieces(tokens);
  const index = occurrences(texts).map((n) => (n === null ? "" : [...`${n}`].map((d) => "₀₁₂₃₄₅₆₇₈₉"[d]).join("")));
  return texts.map((text, i) => cut(text, most) + index[i]);
}

const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "#": "&#35;" };
export const escaped = (text) => text.replace(/[&<>#]/g, (sign) => ESCAPES[sign]);

export const ticks = (tokens) => names(tokens, LONGEST).map(escaped);

export const direction = (tokens) => {
  const letters = [...tokens.join("")].filter((char) => LETTER.test(char));
  return letters.filter((char) => RIGHT.test(char)).length > letters.length / 2 ? "rtl" : "ltr";
};

const byteOf = (token) => (token?.match(/^▁?<0x([0-9A-F]{2})>$/) ? parseInt(token.slice(-3, -1), 16) : -1);

// Index after the pieces that spell the character at `start`.
function characterEnd(tokens, start) {
  const lead = byteOf(tokens[start]);
  const most = start + 1 + (lead >= 0xc0) + (lead >= 0xe0) + (lead >= 0xf0);
  let stop = start + 1;
  while (stop < most && byteOf(tokens[stop]) >= 0x80 && byteOf(tokens[stop]) < 0xc0) stop += 1;
  return stop;
}

const spelled = (tokens) => new TextDecoder().decode(Uint8Array.from(tokens, byteOf));

// The chips of a strip; the bytes of a character are one.
export function chips(tokens) {
  const spans = [];
  for (let at = 0; at < tokens.length; at = spans.at(-1)[1]) spans.push([at, characterEnd(tokens, at)]);
  const texts = spans.map(([first, stop]) => (stop - first > 1 ? spelled(tokens.slice(first, stop)) : tokens[first]));
  const [shown, numbers] = [pieces(texts), occurrences(pieces(texts))];
  return spans.map(([first, stop], i) => {
    const special = isSpecial(tokens[first]);
    const gap = special || tokens[first].startsWith(START);
    const look = { special: special || UNKNOWN.test(tokens[first]), index: numbers[i], gloss: null };
    return { text: cut(shown[i], CHIP), first, last: stop - 1, gap, ...look };
  });
}
