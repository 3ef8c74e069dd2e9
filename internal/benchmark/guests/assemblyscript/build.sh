#!/bin/sh
# Builds the committed AssemblyScript module with the compiler and Extism's PDK from npm, as
# package-lock.json says.
set -eu
cd "$(dirname "$0")"
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp package.json package-lock.json plugin.ts "$work"
cd "$work"
npm ci --silent --ignore-scripts --no-audit --no-fund
node_modules/.bin/asc plugin.ts -O3 --use abort=plugin/abort --outFile "$here/plugin.wasm"
cd "$here"
chmod 644 plugin.wasm

# The sources are listed too, so that a test sees an edit that was not built.
find . -type f ! -name SHA256SUMS | LC_ALL=C sort | xargs sha256sum > SHA256SUMS
