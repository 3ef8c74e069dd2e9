package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/interpreter"
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
	if _, err := w.run(ctx,
		command{args: []string{"rustup", "toolchain", "install", rustToolchain, "--profile", "minimal", "--target",
			"wasm32-wasip1"}}); err != nil {
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
		env: []string{"CARGO_TARGET_DIR=" + filepath.Join(w.dir, "cargo", "target"), "CARGO_PROFILE_RELEASE_DEBUG=0",
			"CARGO_PROFILE_RELEASE_STRIP=true"},
		args: slices.Concat([]string{"cargo", "+" + rustToolchain, "install", "--quiet", "--locked", "--no-track", "--target",
			"wasm32-wasip1",
			"--root", root, "--version", "=" + c.number, "--bin", binary}, c.features, []string{c.name}),
	})
	if err != nil {
		return err
	}
	// A copy: Cargo links this file to one that later builds reuse without checking its content.
	return copyFile(filepath.Join(root, "bin", binary+".wasm"), out)
}

// interpreterModule is an interpreter of script tools, by its language, as package interpreters installs it.
type interpreterModule string

// interpreter returns the interpreter, and the name and the version of the package with its sources.
func (m interpreterModule) interpreter() (i interpreter.Interpreter, origin, version string) {
	i, _ = interpreter.For(string(m)) // the catalogue's tests look at each
	sources, _, _ := strings.Cut(i.Origin, ",")
	at := strings.LastIndex(sources, " ")
	return i, sources[:max(at, 0)], sources[at+1:]
}

func (m interpreterModule) origin() string {
	_, origin, _ := m.interpreter()
	return origin
}

func (m interpreterModule) version(context.Context, workshop) (string, error) {
	_, _, version := m.interpreter()
	return version, nil
}

func (interpreterModule) needs() []string { return []string{"cargo", "python3"} }

func (m interpreterModule) build(ctx context.Context, w workshop, out string) error {
	i, _, _ := m.interpreter()
	folder := interpreter.Folder(filepath.Join(w.dir, "interpreters"))
	if !folder.Has(i) {
		if err := folder.Install(ctx, i, nil); err != nil {
			return err
		}
	}
	module, err := folder.Read(i)
	if err != nil {
		return err
	}
	return os.WriteFile(out, module, 0o600)
}
