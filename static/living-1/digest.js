// SHA-256 (FIPS 180-4) of a text in UTF-8. Its own, because browsers offer theirs to secure addresses only, and a
// file has none.

const SIZE = 64;

// The first 32 bits behind the point of a root, of each of the first primes.
function fractions(count, root) {
  const primes = [];
  for (let n = 2; primes.length < count; n += 1) if (primes.every((prime) => n % prime)) primes.push(n);
  return primes.map((prime) => Math.floor((root(prime) % 1) * 2 ** 32));
}

const ROUNDS = Int32Array.from(fractions(SIZE, Math.cbrt), (each) => each | 0);
const START = fractions(8, Math.sqrt);
const turn = (word, by) => (word >>> by) | (word << (32 - by));

// The text, a one, zeros, and its length in bits: whole blocks of 64 bytes.
function blocks(text) {
  const given = new TextEncoder().encode(text);
  const bytes = new Uint8Array(Math.ceil((given.length + 9) / SIZE) * SIZE);
  bytes.set(given);
  bytes[given.length] = 0x80;
  const view = new DataView(bytes.buffer);
  view.setUint32(bytes.length - 8, Math.floor(given.length / 2 ** 29));
  view.setUint32(bytes.length - 4, (given.length << 3) >>> 0);
  return view;
}

function schedule(words, view, at) {
  for (let i = 0; i < 16; i += 1) words[i] = view.getInt32(at + 4 * i);
  for (let i = 16; i < SIZE; i += 1) {
    const [early, late] = [words[i - 15], words[i - 2]];
    const one = turn(early, 7) ^ turn(early, 18) ^ (early >>> 3);
    const two = turn(late, 17) ^ turn(late, 19) ^ (late >>> 10);
    words[i] = (words[i - 16] + one + words[i - 7] + two) | 0;
  }
}

export function sha256(text) {
  const view = blocks(text);
  const [words, state] = [new Int32Array(SIZE), Int32Array.from(START, (each) => each | 0)];
  for (let at = 0; at < view.byteLength; at += SIZE) {
    schedule(words, view, at);
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < SIZE; i += 1) {
      const chosen = (e & f) ^ (~e & g);
      const most = (a & b) ^ (a & c) ^ (b & c);
      const first = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + chosen + ROUNDS[i] + words[i]) | 0;
      const second = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + most) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
    }
    for (const [i, each] of [a, b, c, d, e, f, g, h].entries()) state[i] += each;
  }
  return [...state].map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}
