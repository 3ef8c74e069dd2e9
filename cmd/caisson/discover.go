package main

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
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
	for _, err := range each(err) {
		file := path
		var inFile *registry.Error
		if errors.As(err, &inFile) {
			file = inFile.Name
		}
		problems = append(problems, discoveryProblem(file, unreadable, reasonOf(err), "name a readable manifest, or a folder that holds some"))
	}
	if len(files)+len(problems) == 0 {
		problems = append(problems, discoveryProblem(path, manifests.Missing, "there is no manifest in this folder", "manifests are named tool.yaml, tool.json or NAME.tool.yaml"))
	}
	return files, problems, nil
}

// each splits a joined error.
func each(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

func discoveryProblem(file string, kind manifests.ProblemKind, message, fix string) manifests.Problem {
	return manifests.Problem{File: file, Line: 1, Column: 1, Kind: kind, Message: message, Fix: fix}
}

// reasonOf returns an error's text without the path, which is printed separately.
func reasonOf(err error) string {
	var inPath *fs.PathError
	if errors.As(err, &inPath) {
		return inPath.Err.Error()
	}
	var inRegistry *registry.Error
	if errors.As(err, &inRegistry) {
		return inRegistry.Err.Error()
	}
	return err.Error()
}
