package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
)

// goPackage is a program of the Go module proxy's, by its package's path. go/go.mod pins its version,
// and go/go.sum the digest of everything that it is built from.
type goPackage string

func (p goPackage) origin() string { return "Go: " + string(p) }

func (goPackage) needs() []string { return []string{"go"} }

func (p goPackage) version(ctx context.Context, w workshop) (string, error) {
	dir := filepath.Join(w.home, "go")
	out, err := w.run(ctx, command{in: dir, args: []string{"go", "mod", "edit", "-json"}})
	if err != nil {
		return "", err
	}
	var file struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal([]byte(out), &file); err != nil {
		return "", err
	}
	for _, module := range file.Require {
		if strings.HasPrefix(string(p)+"/", module.Path+"/") {
			return strings.TrimPrefix(module.Version, "v"), nil
		}
	}
	return "", fmt.Errorf("%s/go.mod requires no module of %s; add it with go get -tool", dir, p)
}

func (p goPackage) build(ctx context.Context, w workshop, out string) error {
	_, err := w.run(ctx, command{
		in:   filepath.Join(w.home, "go"),
		env:  []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0"},
		args: []string{"go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, string(p)},
	})
	return err
}
