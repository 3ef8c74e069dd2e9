package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
)

// npmFile is a module that an npm package contains. npm/package-lock.json pins the package's version
// and digest.
type npmFile struct{ name, file string }

func (f npmFile) origin() string { return "npm: " + f.name + ", " + path.Base(f.file) }

func (npmFile) needs() []string { return []string{"npm"} }

func (f npmFile) version(_ context.Context, w workshop) (string, error) {
	content, err := os.ReadFile(filepath.Join(w.home, "npm", "package-lock.json"))
	if err != nil {
		return "", err
	}
	var lock struct {
		Packages map[string]struct{ Version, Integrity string }
	}
	if err := json.Unmarshal(content, &lock); err != nil {
		return "", fmt.Errorf("npm/package-lock.json: %w", err)
	}
	entry := lock.Packages["node_modules/"+f.name]
	if entry.Version == "" || entry.Integrity == "" {
		return "", fmt.Errorf("npm/package-lock.json does not pin %s with its integrity", f.name)
	}
	return entry.Version, nil
}

func (f npmFile) build(ctx context.Context, w workshop, out string) error {
	dir, err := w.folder("npm", false)
	if err != nil {
		return err
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		if err := copyFile(filepath.Join(w.home, "npm", name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	installed := filepath.Join(dir, "node_modules", filepath.FromSlash(f.name), filepath.FromSlash(f.file))
	if _, err := w.run(ctx,
		command{in: dir, args: []string{"npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"}}); err != nil {
		return err
	}
	return copyFile(installed, out)
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600)
}
