#!/bin/sh
# Builds the committed Rust modules. Debian 12 (with security updates):
#   apt-get install --no-install-recommends rustc-web cargo-web rust-web-src rust-web-llvm \
#     librust-serde-json-dev librust-serde-derive-dev librust-serde-dev lld-22 wasi-libc
# as of rustc-web 1.96.0+dfsg1-1~deb12u2, lld-22 1:22.1.8-1~deb12u1, serde 1.0.152,
# serde_json 1.0.87, wasi-libc 0.0~git20220510.9886d3d-2. No network is used.
set -eu
cd "$(dirname "$0")"
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp -r Cargo.toml kernels kernelcommand untuned untunedcommand recursive recursivecommand tool plugin "$work"
cd "$work"
# Debian's crates and those that the standard library needs, in the one place that cargo looks.
mkdir vendor
for crate in /usr/share/cargo/registry/* /usr/lib/rustlib/src/rust/library/vendor/*; do
  ln -sfn "$crate" "vendor/$(basename "$crate")"
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
rustflags = ["--remap-path-prefix=$work=.", "-Clink-self-contained=no", "-L/usr/lib/wasm32-wasi", "-Clink-arg=/usr/lib/wasm32-wasi/crt1-command.o"]
CONFIG

# Building the standard library is an unstable option, which the variable lets a stable compiler take.
build() {
  command=$1 target=$2 package=$3
  shift 3
  PATH=/usr/bin:$PATH RUSTC_BOOTSTRAP=1 \
    /usr/bin/cargo "$command" --release --offline --target "$target" -p "$package" "$@"
}
# The kernels are a module of their own, and a library for the command.
build rustc wasm32-unknown-unknown kernels --crate-type cdylib
build rustc wasm32-unknown-unknown untuned --crate-type cdylib
build rustc wasm32-unknown-unknown recursive --crate-type cdylib
build build wasm32-unknown-unknown plugin
build build wasm32-wasip1 kernelcommand
build build wasm32-wasip1 untunedcommand
build build wasm32-wasip1 recursivecommand
build build wasm32-wasip1 tool

(cd target/wasm32-unknown-unknown/release && cp kernels.wasm untuned.wasm recursive.wasm plugin.wasm "$here")
(cd target/wasm32-wasip1/release && cp kernelcommand.wasm untunedcommand.wasm recursivecommand.wasm tool.wasm "$here")
cd "$here"
chmod 644 ./*.wasm

# The sources are listed too, so that a test sees an edit that was not built.
find . -type f ! -name SHA256SUMS | LC_ALL=C sort | xargs sha256sum > SHA256SUMS
