#!/bin/sh
# Builds the committed Zig modules. Zig is a package for Python:
#   python3 -m pip install ziglang==0.17.1
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ZIG_GLOBAL_CACHE_DIR="$work" ZIG_LOCAL_CACHE_DIR="$work"

for mode in Debug ReleaseFast ReleaseSmall; do
  python3 -m ziglang build-exe endless.zig -target wasm32-wasi -O $mode -fstrip "-femit-bin=$work/endless.wasm"
  cp "$work/endless.wasm" endless-$mode.wasm
  chmod 644 endless-$mode.wasm
done

# The sources are listed too, so that a test sees an edit that was not built.
find . -type f ! -name SHA256SUMS | LC_ALL=C sort | xargs sha256sum > SHA256SUMS
