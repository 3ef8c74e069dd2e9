#!/bin/sh
# Builds the committed C modules. Debian 12 (with security updates):
#   apt-get install --no-install-recommends clang-22 lld-22 llvm-22 libclang-rt-22-dev-wasm32 wasi-libc
# as of clang-22 1:22.1.8-1~deb12u1 and wasi-libc 0.0~git20220510.9886d3d-2.
set -eu
cd "$(dirname "$0")"

for module in plugin hostile callbacks script; do
  # Debian names the target wasm32-wasi, which clang calls deprecated.
  clang-22 --target=wasm32-wasi -Wno-deprecated --no-wasm-opt -std=c17 -O2 -Wall -Wextra -Werror \
    -Wl,--strip-all -mexec-model=reactor $module.c -o $module.wasm
  chmod 644 $module.wasm
done

# The sources are listed too, so that a test sees an edit that was not built.
find . -type f ! -name SHA256SUMS | LC_ALL=C sort | xargs sha256sum > SHA256SUMS
