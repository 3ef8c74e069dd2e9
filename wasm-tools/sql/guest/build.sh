#!/bin/sh
# Builds sql.wasm, or the file that it is told, from SQLite's amalgamation and the sources here. Debian 12 (with security updates):
#   apt-get install --no-install-recommends clang-22 lld-22 libclang-rt-22-dev-wasm32 wasi-libc
# as of clang-22 1:22.1.8-1~deb12u1 and wasi-libc 0.0~git20220510.9886d3d-2. The amalgamation comes from the Go module
# proxy: SQLite 3.50.4 as github.com/mattn/go-sqlite3 has it.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

./amalgamation.sh "$work"
compile() {
  # Debian names the target wasm32-wasi, which clang calls deprecated. Without contraction floating-point
  # results are those of the native build.
  clang-22 --target=wasm32-wasi -Wno-deprecated -std=c17 -O2 -msimd128 -ffp-contract=off -include options.h -I. -I"$work" "$@"
}
compile -w -c "$work/sqlite3.c" -o "$work/sqlite3.o"
# The stack lies below everything else, so that it cannot grow into data.
compile --no-wasm-opt -Wall -Wextra -Werror ./*.c "$work/sqlite3.o" -Wl,--strip-all -Wl,--stack-first -Wl,-z,stack-size=1048576 \
  -o "$work/sql.wasm"
chmod 644 "$work/sql.wasm"
if [ $# -gt 0 ]; then
  mv "$work/sql.wasm" "$1"
  exit
fi
mv "$work/sql.wasm" sql.wasm

# The sources are listed too, so that a test sees an edit that was not built.
find . -type f ! -name SHA256SUMS | LC_ALL=C sort | xargs sha256sum > SHA256SUMS
