#!/bin/sh
# Makes kernel.wasm of kernel.ts. The compiler is not among what the project needs:
#   npm install --prefix /tmp/kernel assemblyscript@0.28.20 && PATH=/tmp/kernel/node_modules/.bin:$PATH sh build.sh
cd "$(dirname "$0")" && exec asc kernel.ts --outFile "${1:-kernel.wasm}" --runtime stub --importMemory --noAssert \
  --enable simd -O3 --converge
