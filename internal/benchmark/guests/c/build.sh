#!/bin/sh
# Builds the committed C modules. Debian 12 (with security updates):
#   apt-get install --no-install-recommends clang-22 lld-22 llvm-22 libclang-rt-22-dev-wasm32 wasi-libc
# as of clang-22 1:22.1.8-1~deb12u1 and wasi-libc 0.0~git20220510.9886d3d-2.
set -eu
cd "$(dirname "$0")"

compile() {
  # Debian names the target wasm32-wasi, which clang calls deprecated. Without contraction
  # floating-point results are those of the other languages.
  clang-22 --target=wasm32-wasi -Wno-deprecated --no-wasm-opt -std=c17 -O2 \
    -Wall -Wextra -Werror -fno-math-errno -ffp-contract=off -Wl,--strip-all "$@"
}
compile -mexec-model=reactor kernels/*.c -o kernels.wasm
compile -Ikernels kernels/*.c kernelcommand/command.c -o kernelcommand.wasm
compile -mexec-model=reactor untuned/*.c -o untuned.wasm
compile -Iuntuned untuned/*.c kernelcommand/command.c -o untunedcommand.wasm
compile -mexec-model=reactor recursive/*.c -o recursive.wasm
compile -Irecursive recursive/*.c kernelcommand/command.c -o recursivecommand.wasm
compile tool/command.c tool/handle.c tool/reader.c tool/buffer.c -o tool.wasm
compile -mexec-model=reactor tool/plugin.c tool/handle.c tool/reader.c tool/buffer.c -o plugin.wasm
chmod 644 ./*.wasm

# The sources are listed too, so that a test sees an edit that was not built.
find . -type f ! -name SHA256SUMS | LC_ALL=C sort | xargs sha256sum > SHA256SUMS
