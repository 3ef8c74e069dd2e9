#!/bin/sh
# Builds the committed kernel. Debian 12 (with security updates):
#   apt-get install --no-install-recommends clang-22 lld-22
# as of clang-22 1:22.1.8-1~deb12u1.
set -eu
cd "$(dirname "$0")"

clang-22 --target=wasm32 -std=c17 -O2 -Wall -Wextra -Werror -ffreestanding -nostdlib -mbulk-memory \
  -Wl,--no-entry -Wl,--strip-all -Wl,-z,stack-size=1024 -Wl,--export=caisson:left kernel.c -o kernel.wasm
chmod 644 kernel.wasm

# The source is listed too, so that a test sees an edit that was not built.
find . -type f ! -name SHA256SUMS | LC_ALL=C sort | xargs sha256sum > SHA256SUMS
