package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// zig compiles C, C++ and Zig to WebAssembly, and brings the C library that they need. The digest is
// that of the wheel for Linux on x86-64.
var zig = wheel{"ziglang", "0.17.1", "ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54"}

// zigCommand returns a command of Zig's, which is installed first if need be.
func (w workshop) zigCommand(ctx context.Context, args ...string) (command, error) {
	dir := filepath.Join(w.dir, "pypi", zig.name+"-"+zig.number)
	executable := filepath.Join(dir, "ziglang", "zig")
	// pip writes what a package is last, when all of it is there.
	if _, err := os.Stat(filepath.Join(dir, zig.name+"-"+zig.number+".dist-info")); errors.Is(err, fs.ErrNotExist) {
		if _, err := zig.install(ctx, w); err != nil {
			return command{}, err
		}
	}
	cache := filepath.Join(w.dir, "zig-cache")
	return command{
		env:  []string{"ZIG_GLOBAL_CACHE_DIR=" + cache, "ZIG_LOCAL_CACHE_DIR=" + cache},
		args: slices.Concat([]string{executable}, args),
	}, nil
}

// zigProgram is a program in Zig that comes with Zig's own sources, by its folder below lib/compiler.
// The file of its name in the folder zig says where its main function is.
type zigProgram string

func (p zigProgram) origin() string { return "PyPI: " + zig.name }

func (zigProgram) needs() []string { return zig.needs() }

func (p zigProgram) version(context.Context, workshop) (string, error) { return zig.number, nil }

func (p zigProgram) build(ctx context.Context, w workshop, out string) error {
	c, err := w.zigCommand(ctx)
	if err != nil {
		return err
	}
	sources := filepath.Join(filepath.Dir(c.args[0]), "lib", "compiler")
	root := filepath.Join(sources, "caisson_"+string(p)+".zig")
	if err := copyFile(filepath.Join(w.home, "zig", string(p)+".zig"), root); err != nil {
		return err
	}
	c.args = append(c.args, "build-exe", "-target", "wasm32-wasi", "-OReleaseSmall", "--dep", "aro", "--dep",
		"build_options",
		"-Mroot="+root, "--dep", "build_options", "-Maro="+filepath.Join(sources, "aro", "aro.zig"),
		"-Mbuild_options="+filepath.Join(w.home, "zig", "build_options.zig"), "-femit-bin="+out)
	_, err = w.run(ctx, c)
	return err
}
