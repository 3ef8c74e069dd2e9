#!/bin/sh
# Builds the committed Rust modules. Debian 12 (with security updates):
#   apt-get install --no-install-recommends rustc-web cargo-web rust-web-src rust-web-llvm lld-22 wasi-libc
# as of rustc-web 1.96.0+dfsg1-1~deb12u2, lld-22 1:22.1.8-1~deb12u1 and
# wasi-libc 0.0~git20220510.9886d3d-2. No network is used.
set -eu
cd "$(dirname "$0")"
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp -r Cargo.toml src "$work"
cd "$work"
# The crates that the standard library needs, in the one place that cargo looks.
mkdir vendor .cargo
for crate in /usr/lib/rustlib/src/rust/library/vendor/*; do
  ln -s "$crate" "vendor/$(basename "$crate")"
done
cat > .cargo/config.toml <<CONFIG
[source.crates-io]
replace-with = "vendor"
[source.vendor]
directory = "$work/vendor"
[unstable]
build-std = ["std", "panic_abort"]
[target.wasm32-wasip1]
linker = "wasm-ld-22"
rustflags = ["--remap-path-prefix=$work=.", "-Clink-self-contained=no", "-L/usr/lib/wasm32-wasi", "-Clink-arg=/usr/lib/wasm32-wasi/crt1-command.o"]
CONFIG

# Building the standard library is an unstable option, which the variable lets a stable compiler take.
build() {
  PATH=/usr/bin:$PATH RUSTC_BOOTSTRAP=1 /usr/bin/cargo build --offline --target wasm32-wasip1 "$@"
}
build
build --release
cp target/wasm32-wasip1/debug/endless.wasm "$here/endless-O0.wasm"
cp target/wasm32-wasip1/release/endless.wasm "$here/endless-O3.wasm"
cd "$here"
chmod 644 ./*.wasm

# The sources are listed too, so that a test sees an edit that was not built.
find . -type f ! -name SHA256SUMS | LC_ALL=C sort | xargs sha256sum > SHA256SUMS
