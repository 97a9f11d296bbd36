// Products of a matrix with vectors of float32, four numbers at once (SIMD). AssemblyScript; `build.sh` makes
// kernel.wasm of it. Rows begin at `weights`, each of `width` numbers, a multiple of 16. Row r of the matrix and
// vector t give the number at `y + 4 * (t * rows + r)`. Scales of 8 bits are the caller's.

@inline
function sum(a: v128): f32 {
  const pairs = f32x4.add(a, i8x16.shuffle(a, a, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
  return f32x4.extract_lane(pairs, 0) + f32x4.extract_lane(pairs, 1);
}

// Four whole numbers of 8 bits, as float32: the lower or the upper half of eight that were read as 16 bits.
@inline
function low(eight: v128): v128 {
  return f32x4.convert_i32x4_s(i32x4.extend_low_i16x8_s(eight));
}

@inline
function high(eight: v128): v128 {
  return f32x4.convert_i32x4_s(i32x4.extend_high_i16x8_s(eight));
}

@inline
function plus(a: v128, x: usize, first: v128, second: v128): v128 {
  return f32x4.add(f32x4.add(a, f32x4.mul(first, v128.load(x))), f32x4.mul(second, v128.load(x, 16)));
}

// Whole numbers from −127 to 127. Four vectors share what is read of the matrix.
export function times8(weights: usize, x: usize, y: usize, rows: i32, width: i32, vectors: i32): void {
  const next: usize = <usize>width << 2;
  for (let r = 0; r < rows; r++) {
    const row: usize = weights + <usize>r * width;
    let t = 0;
    for (; t + 4 <= vectors; t += 4) {
      let a = f32x4.splat(0), b = a, c = a, d = a;
      let at: usize = x + <usize>t * next;
      for (let i = 0; i < width; i += 8, at += 32) {
        const eight = v128.load8x8_s(row + i);
        const first = low(eight), second = high(eight);
        a = plus(a, at, first, second);
        b = plus(b, at + next, first, second);
        c = plus(c, at + 2 * next, first, second);
        d = plus(d, at + 3 * next, first, second);
      }
      const to: usize = y + ((<usize>t * rows + r) << 2), line: usize = <usize>rows << 2;
      store<f32>(to, sum(a));
      store<f32>(to + line, sum(b));
      store<f32>(to + 2 * line, sum(c));
      store<f32>(to + 3 * line, sum(d));
    }
    for (; t < vectors; t++) {
      let a = f32x4.splat(0), b = a, c = a, d = a;
      let at: usize = x + <usize>t * next;
      for (let i = 0; i < width; i += 16, at += 64) {
        const eight = v128.load8x8_s(row + i), more = v128.load8x8_s(row + i, 8);
        a = f32x4.add(a, f32x4.mul(low(eight), v128.load(at)));
        b = f32x4.add(b, f32x4.mul(high(eight), v128.load(at, 16)));
        c = f32x4.add(c, f32x4.mul(low(more), v128.load(at, 32)));
        d = f32x4.add(d, f32x4.mul(high(more), v128.load(at, 48)));
      }
      store<f32>(y + ((<usize>t * rows + r) << 2), sum(f32x4.add(f32x4.add(a, b), f32x4.add(c, d))));
    }
  }
}

// Numbers of float32.
export function times32(weights: usize, x: usize, y: usize, rows: i32, width: i32, vectors: i32): void {
  const next: usize = <usize>width << 2;
  for (let r = 0; r < rows; r++) {
    const row: usize = weights + <usize>r * next;
    for (let t = 0; t < vectors; t++) {
      let a = f32x4.splat(0), b = a;
      let at: usize = x + <usize>t * next;
      for (let i: usize = 0; i < next; i += 32, at += 32) {
        a = f32x4.add(a, f32x4.mul(v128.load(row + i), v128.load(at)));
        b = f32x4.add(b, f32x4.mul(v128.load(row + i, 16), v128.load(at, 16)));
      }
      store<f32>(y + ((<usize>t * rows + r) << 2), sum(f32x4.add(a, b)));
    }
  }
}
