package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime/extism"
)

// discoverAll returns the manifests and policies at all paths, without duplicates, and a problem
// for each unusable one.
func discoverAll(ctx context.Context, paths []string) (files, policies []string, problems []manifests.Problem, err error) {
	for _, path := range paths {
		if isPolicy(path) {
			policies = append(policies, path)
			continue
		}
		inside := policiesIn(path)
		found, wrong, err := discover(ctx, path)
		if err != nil {
			return nil, nil, nil, err
		}
		if len(found) == 0 && len(inside) > 0 {
			wrong = slices.DeleteFunc(wrong, func(p manifests.Problem) bool { return p.Kind == manifests.Missing })
		}
		files, policies, problems = append(files, found...), append(policies, inside...), append(problems, wrong...)
	}
	return distinct(files), distinct(policies), problems, nil
}

// discover returns the manifest files at a path, as a registry would load them, and a problem for
// each unusable one.
func discover(ctx context.Context, path string) (files []string, problems []manifests.Problem, err error) {
	files, err = registry.Files(ctx, path)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if err != nil {
		for _, leaf := range leavesOf(err) {
			file := path
			if inFile, ok := errors.AsType[*registry.Error](leaf); ok {
				file = inFile.Name
			}
			problems = append(problems, problemIn(file, unreadable, reasonOf(leaf), "name a readable manifest, or a folder that holds some"))
		}
	}
	if len(files)+len(problems) == 0 {
		problems = append(problems, problemIn(path, manifests.Missing, "there is no manifest in this folder",
			cmp.Or(namedThemselves("caisson validate ", path), "manifests are named tool.yaml, tool.json or NAME.tool.yaml")))
	}
	return files, problems, nil
}

// namedThemselves says how to name the manifest of Extism that a folder has, as the argument of a command or a
// flag. Folders are searched for Caisson's alone. It returns "" if there is none.
func namedThemselves(command, folder string) string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return ""
	}
	for _, entry := range entries[:min(len(entries), lookedFiles)] {
		if file := filepath.Join(folder, entry.Name()); extism.IsManifest(file) {
			return "a manifest of Extism in a folder is not found by itself; name it: " + command + quoted(file)
		}
	}
	return ""
}

// manifestsHere returns the first folder in the working directory that has a manifest itself, or "".
func manifestsHere() string {
	entries, err := os.ReadDir(".")
	if err != nil {
		return ""
	}
	for _, entry := range entries[:min(len(entries), lookedFiles)] {
		if !entry.IsDir() {
			continue
		}
		files, err := os.ReadDir(entry.Name())
		if err != nil {
			continue
		}
		if slices.ContainsFunc(files[:min(len(files), lookedFiles)], func(file fs.DirEntry) bool { return manifests.IsManifestName(file.Name()) }) {
			return entry.Name()
		}
	}
	return ""
}

// exampleOf returns a folder as an example for a hint, or "" if there is none.
func exampleOf(folder string) string {
	if folder == "" {
		return ""
	}
	return ", such as --tools " + quoted(folder)
}

// lookedFiles is among how many files of a folder manifests are looked for.
const lookedFiles = 1000

// reasonOf returns an error's text without the path, which is printed separately.
func reasonOf(err error) string {
	if inPath, ok := errors.AsType[*fs.PathError](err); ok {
		return inPath.Err.Error()
	}
	if inRegistry, ok := errors.AsType[*registry.Error](err); ok {
		return inRegistry.Err.Error()
	}
	return err.Error()
}
