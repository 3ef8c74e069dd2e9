package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
)

// discovery finds manifest files where [registry.Directory] does, and goes on where
// that stops: a broken manifest does not hide the others.
type discovery struct {
	files    []string
	problems []manifests.Problem
	entries  int
}

// path finds the manifests at a path: a file is one itself, whatever its name.
func (d *discovery) path(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		d.problem(path, unreadable, reasonOf(err), "name a manifest or a folder that holds some")
		return nil
	case !info.IsDir():
		d.files = append(d.files, path)
		return nil
	}
	before := len(d.files) + len(d.problems)
	if err := d.folder(ctx, path, 0); err != nil {
		return err
	}
	if len(d.files)+len(d.problems) == before {
		d.problem(path, manifests.Missing, "there is no manifest in this folder", "manifests are called tool.yaml, tool.json or NAME.tool.yaml")
	}
	return nil
}

func (d *discovery) folder(ctx context.Context, path string, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if depth > registry.MaxDirectoryDepth {
		d.problem(path, manifests.OutOfRange, fmt.Sprintf("more than %d folders deep", registry.MaxDirectoryDepth), "name the folders that hold tools")
		return nil
	}
	children, err := os.ReadDir(path)
	if err != nil {
		d.problem(path, unreadable, reasonOf(err), "make the folder readable")
		return nil
	}
	if d.entries += len(children); d.entries > registry.MaxDirectoryEntries {
		return failed(exitUsage, fmt.Sprintf("%s: more than %d files", path, registry.MaxDirectoryEntries), "name the folders that hold tools")
	}
	for _, child := range children {
		name := filepath.Join(path, child.Name())
		switch {
		case child.IsDir() && (strings.HasPrefix(child.Name(), ".") || child.Name() == "node_modules"):
		case child.IsDir():
			if err := d.folder(ctx, name, depth+1); err != nil {
				return err
			}
		case manifests.IsManifestName(child.Name()):
			d.file(name, child.Type())
		}
	}
	return nil
}

func (d *discovery) file(path string, kind fs.FileMode) {
	if kind&fs.ModeSymlink != 0 {
		if target, err := os.Stat(path); err == nil && target.IsDir() {
			return // a folder that happens to have a manifest's name
		}
	}
	if kind.IsRegular() {
		d.files = append(d.files, path)
		return
	}
	d.problem(path, unreadable, "the manifest is not a regular file", "put the file itself here")
}

func (d *discovery) problem(file string, kind manifests.ProblemKind, message, fix string) {
	d.problems = append(d.problems, manifests.Problem{File: file, Line: 1, Column: 1, Kind: kind, Message: message, Fix: fix})
}

// reasonOf returns what is wrong without the path, which stands beside it.
func reasonOf(err error) string {
	var inPath *fs.PathError
	if errors.As(err, &inPath) {
		return inPath.Err.Error()
	}
	return err.Error()
}
