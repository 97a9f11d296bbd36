// A matrix of a linear layer, and its product with vectors: by the kernel (kernel.ts), or in JavaScript where
// WebAssembly is not allowed.

import { floatsOf } from "./tensors.js";

const UNIT = 16; // numbers in a row are a multiple of it, filled up with zeros

const upTo = (length, unit) => Math.ceil(length / unit) * unit;

// Memory for the kernel: matrices, then the vectors that go in and come out.
export class Memory {
  constructor(kernel) {
    Object.assign(this, { kernel, end: 1024, x: 0, y: 0, room: 0 });
  }

  static async of(bytes) {
    const memory = new WebAssembly.Memory({ initial: 1 });
    const { instance } = await WebAssembly.instantiate(bytes, { env: { memory } });
    return new Memory({ memory, ...instance.exports });
  }

  // The place of so many bytes.
  take(bytes) {
    const at = this.end;
    this.end = upTo(at + bytes, UNIT);
    const { memory } = this.kernel;
    const pages = Math.ceil((this.end - memory.buffer.byteLength) / 65536);
    if (pages > 0) memory.grow(pages);
    return at;
  }

  floats(at, count) {
    return new Float32Array(this.kernel.memory.buffer, at, count);
  }

  // Places for what goes in and what comes out, of so many bytes at most; they grow, and are used again.
  vectors(bytes) {
    if (bytes > this.room) Object.assign(this, { x: this.take(bytes), y: this.take(bytes), room: bytes });
    return this;
  }
}

export class Matrix {
  // `name` without ".weight"; without a memory the product is JavaScript's. `bias` is another tensor's name, if it is
  // not the layer's own.
  constructor(memory, tensors, name, bias = `${name}.bias`) {
    const { shape, numbers } = tensors[`${name}.weight`];
    [this.rows, this.columns] = shape;
    const scale = tensors[`${name}.weight.multiplier`]?.numbers ?? null;
    this.scale = scale && Float32Array.from({ length: this.rows }, (_, i) => 1 / scale[scale.length > 1 ? i : 0]);
    this.bias = floatsOf(tensors, bias);
    this.width = upTo(this.columns, UNIT);
    this.memory = memory;
    if (memory) this.lay(numbers);
    else this.numbers = numbers;
  }

  // Copies the numbers into the kernel's memory, row by row.
  lay(numbers) {
    const Type = numbers.constructor;
    this.at = this.memory.take(this.rows * this.width * Type.BYTES_PER_ELEMENT);
    const all = new Type(this.memory.kernel.memory.buffer, this.at, this.rows * this.width);
    const { columns, width } = this;
    if (columns === width) all.set(numbers);
    else for (let r = 0; r < this.rows; r += 1) all.set(numbers.subarray(r * columns, (r + 1) * columns), r * width);
    this.Type = Type;
  }

  // (vectors × columns) → (vectors × rows)
  times(x, vectors = 1) {
    const y = this.memory ? this.fast(x, vectors) : this.plain(x, vectors);
    const { rows, scale, bias } = this;
    for (let t = 0, i = 0; t < vectors; t += 1) {
      for (let r = 0; r < rows; r += 1, i += 1) y[i] = y[i] * (scale ? scale[r] : 1) + (bias ? bias[r] : 0);
    }
    return y;
  }

  fast(x, vectors) {
    const { memory, rows, columns, width } = this;
    const places = memory.vectors(4 * vectors * Math.max(width, rows));
    const into = memory.floats(places.x, vectors * width);
    if (columns === width) into.set(x);
    else {
      into.fill(0);
      for (let t = 0; t < vectors; t += 1) into.set(x.subarray(t * columns, (t + 1) * columns), t * width);
    }
    const product = this.Type === Int8Array ? memory.kernel.times8 : memory.kernel.times32;
    product(this.at, places.x, places.y, rows, width, vectors);
    return memory.floats(places.y, vectors * rows).slice();
  }

  plain(x, vectors) {
    const { rows, columns, numbers } = this;
    const y = new Float32Array(vectors * rows);
    for (let t = 0; t < vectors; t += 1) {
      for (let r = 0; r < rows; r += 1) {
        const [row, at] = [r * columns, t * columns];
        let [a, b] = [0, 0];
        for (let i = 0; i + 1 < columns; i += 2) {
          a += numbers[row + i] * x[at + i];
          b += numbers[row + i + 1] * x[at + i + 1];
        }
        if (columns % 2) a += numbers[row + columns - 1] * x[at + columns - 1];
        y[t * rows + r] = a + b;
      }
    }
    return y;
  }

  // A row, as an embedding; zeros past the last one.
  row(i) {
    const { rows, columns, width, memory, scale } = this;
    if (i >= rows) return new Float32Array(columns);
    const start = i * (memory ? width : columns);
    const all = memory ? new this.Type(memory.kernel.memory.buffer, this.at, rows * width) : this.numbers;
    return Float32Array.from(all.subarray(start, start + columns), (each) => each * (scale ? scale[i] : 1));
  }
}
