package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// rustToolchain compiles what crates.io has. Cargo checks the digest of each crate against the
// registry's index and the program's own lock file.
const rustToolchain = "1.95.0"

// crate is a program of crates.io's.
type crate struct {
	name, number string
	binary       string   // if it has another name than the crate
	features     []string // flags of cargo's
}

func (c crate) origin() string { return "crates.io: " + c.name }

func (crate) needs() []string { return []string{"rustup", "cargo"} }

func (c crate) version(context.Context, workshop) (string, error) { return c.number, nil }

func (c crate) build(ctx context.Context, w workshop, out string) error {
	if _, err := w.run(ctx, command{args: []string{"rustup", "toolchain", "install", rustToolchain, "--profile", "minimal", "--target", "wasm32-wasip1"}}); err != nil {
		return err
	}
	root, err := w.folder("cargo/"+c.name, true)
	if err != nil {
		return err
	}
	binary := c.name
	if c.binary != "" {
		binary = c.binary
	}
	_, err = w.run(ctx, command{
		env: []string{"CARGO_TARGET_DIR=" + filepath.Join(w.dir, "cargo", "target"), "CARGO_PROFILE_RELEASE_DEBUG=0", "CARGO_PROFILE_RELEASE_STRIP=true"},
		args: slices.Concat([]string{"cargo", "+" + rustToolchain, "install", "--quiet", "--locked", "--no-track", "--target", "wasm32-wasip1",
			"--root", root, "--version", "=" + c.number, "--bin", binary}, c.features, []string{c.name}),
	})
	if err != nil {
		return err
	}
	// A copy: Cargo links this file to one that later builds reuse without looking at what is in it.
	return copyFile(filepath.Join(root, "bin", binary+".wasm"), out)
}

// crateSource is a program in C whose sources a crate carries. The lock file in internal/languages pins
// the crate's version and digest, which Cargo checks. Zig's compiler builds it.
type crateSource struct {
	crate, folder string
	flags, files  []string
}

func (s crateSource) origin() string { return "crates.io: " + s.crate }

func (crateSource) needs() []string { return append([]string{"cargo"}, zig.needs()...) }

func (s crateSource) version(_ context.Context, w workshop) (string, error) {
	file := filepath.Join(w.home, "..", "languages", "Cargo.lock")
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	_, behind, found := strings.Cut(string(content), "name = \""+s.crate+"\"\nversion = \"")
	number, _, ends := strings.Cut(behind, "\"")
	if !found || !ends {
		return "", fmt.Errorf("%s does not pin %s", file, s.crate)
	}
	return number, nil
}

func (s crateSource) build(ctx context.Context, w workshop, out string) error {
	vendored, err := w.folder("vendor/"+s.crate, true)
	if err != nil {
		return err
	}
	manifest := filepath.Join(w.home, "..", "languages", "Cargo.toml")
	if _, err := w.run(ctx, command{args: []string{"cargo", "vendor", "--quiet", "--locked", "--manifest-path", manifest, vendored}}); err != nil {
		return err
	}
	c, err := w.zigCommand(ctx, slices.Concat([]string{"cc", "-target", "wasm32-wasi", "-s", "-w", "-o", out}, s.flags, s.files)...)
	if err != nil {
		return err
	}
	c.in = filepath.Join(vendored, s.crate, filepath.FromSlash(s.folder))
	_, err = w.run(ctx, c)
	return err
}
