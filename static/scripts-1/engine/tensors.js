// Weights from a safetensors file: eight bytes with the length of a JSON head, the head, the numbers.

const shorts = (bytes) => new Uint16Array(bytes.slice().buffer);

const READERS = {
  I8: (bytes) => new Int8Array(bytes.buffer, bytes.byteOffset, bytes.length),
  F32: (bytes) => new Float32Array(bytes.slice().buffer),
  F16: (bytes) => Float32Array.from(shorts(bytes), half),
  BF16: (bytes) => new Float32Array(Uint32Array.from(shorts(bytes), (each) => each << 16).buffer),
};

// A number of 16 bits: a sign, five bits of a power of two, ten bits of the number before it.
function half(bits) {
  const [sign, power, part] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, (bits & 1023) / 1024];
  return sign * (power ? 2 ** (power - 15) * (1 + part) : 2 ** -14 * part);
}

// Tensors by name: their shapes, and their numbers row by row. Numbers of 8 bits are left in the file's bytes.
export function tensorsOf(file) {
  const length = Number(new DataView(file.buffer, file.byteOffset).getBigUint64(0, true));
  const head = JSON.parse(new TextDecoder().decode(file.subarray(8, 8 + length)));
  const found = {};
  for (const [name, { dtype, shape, data_offsets: ends }] of Object.entries(head)) {
    if (name === "__metadata__") continue;
    const [start, stop] = ends.map((each) => 8 + length + each);
    found[name] = { shape, numbers: READERS[dtype](file.subarray(start, stop)) };
  }
  return found;
}

// The numbers of a tensor as they are computed with: those of 8 bits divided by their multipliers, one a row or one.
export function floatsOf(tensors, name) {
  const tensor = tensors[name];
  const multipliers = tensors[`${name}.multiplier`]?.numbers;
  if (!tensor || !multipliers) return tensor?.numbers ?? null;
  const row = tensor.numbers.length / multipliers.length;
  return Float32Array.from(tensor.numbers, (each, i) => each / multipliers[Math.floor(i / row)]);
}
