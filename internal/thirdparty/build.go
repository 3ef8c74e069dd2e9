package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// build makes a program's module, unless the one that is there was made of the same version in the
// same way.
func (w workshop) build(ctx context.Context, p program) (built bool, err error) {
	recipe, err := w.recipe(ctx, p)
	if err != nil {
		return false, err
	}
	stamps, err := w.folder("stamps", false)
	if err != nil {
		return false, err
	}
	stamp, module := filepath.Join(stamps, p.name), w.module(p.name)
	if last, err := os.ReadFile(stamp); err == nil {
		if sum, err := digest(module); err == nil && string(last) == recipe+sum {
			return false, nil
		}
	}
	scratch, err := w.folder("modules", false)
	if err != nil {
		return false, err
	}
	made := filepath.Join(scratch, p.name+".wasm")
	if err := p.source.build(ctx, w, made); err != nil {
		return false, err
	}
	sum, err := digest(made)
	if err != nil {
		return false, err
	}
	if err := os.Rename(made, module); err != nil {
		return false, err
	}
	return true, os.WriteFile(stamp, []byte(recipe+sum), 0o600)
}

// recipe returns a text that changes if what the program is built from, or how, does.
func (w workshop) recipe(ctx context.Context, p program) (string, error) {
	version, err := p.source.version(ctx, w)
	return fmt.Sprintf("%T%+[1]v %s\nRust %s, Zig %s\n", p.source, version, rustToolchain, zig.number), err
}
