#!/bin/sh
# Builds the committed Rust modules, once for each of the two targets that Extism's kit is used with.
# Debian 12 (with security updates):
#   apt-get install --no-install-recommends rustc-web cargo-web rust-web-src rust-web-llvm lld-22 wasi-libc
# as of rustc-web 1.96.0+dfsg1-1~deb12u2, lld-22 1:22.1.8-1~deb12u1 and wasi-libc
# 0.0~git20220510.9886d3d-2. Extism's kit comes from crates.io, as Cargo.lock says.
set -eu
cd "$(dirname "$0")"
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp -r Cargo.toml Cargo.lock src "$work"
cd "$work"
export PATH=/usr/bin:$PATH CARGO_HOME="$work/home" RUSTC_BOOTSTRAP=1
# Cargo builds the standard library too and looks for all crates in one place, so Debian's crates of the
# standard library join those that the lock file names.
/usr/bin/cargo vendor --locked --quiet vendor > /dev/null
for crate in /usr/lib/rustlib/src/rust/library/vendor/*; do
  ln -sfn "$crate" "vendor/std-$(basename "$crate")"
done
mkdir .cargo
cat > .cargo/config.toml <<CONFIG
[source.crates-io]
replace-with = "vendor"
[source.vendor]
directory = "$work/vendor"
[unstable]
build-std = ["std", "panic_abort"]
[target.wasm32-unknown-unknown]
linker = "wasm-ld-22"
rustflags = ["--remap-path-prefix=$work=."]
[target.wasm32-wasip1]
linker = "wasm-ld-22"
rustflags = ["--remap-path-prefix=$work=.", "-Clink-self-contained=no", "-L/usr/lib/wasm32-wasi", "-Clink-arg=/usr/lib/wasm32-wasi/crt1-reactor.o", "-Clink-arg=--entry=_initialize"]
CONFIG
for target in wasm32-unknown-unknown wasm32-wasip1; do
  /usr/bin/cargo build --release --offline --locked --target "$target"
done
cp target/wasm32-unknown-unknown/release/plugin.wasm "$here/plugin.wasm"
cp target/wasm32-wasip1/release/plugin.wasm "$here/wasi.wasm"
cd "$here"
chmod 644 ./*.wasm

# The sources are listed too, so that a test sees an edit that was not built.
find . -type f ! -name SHA256SUMS | LC_ALL=C sort | xargs sha256sum > SHA256SUMS
