package check

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime/extism"
)

// discoverAll returns the manifests and policies at all paths, without duplicates, and a problem for each unusable one.
func discoverAll(ctx context.Context, paths []string) (
	files, policies []string, problems []manifests.Problem, err error,
) {
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
			wrong = slices.DeleteFunc(wrong, func(p manifests.Problem) bool { return p.Kind == mistake.Missing })
		}
		files, policies, problems = append(files, found...), append(policies, inside...), append(problems, wrong...)
	}
	return Distinct(files), Distinct(policies), problems, nil
}

// discover returns the manifest files at a path, as a registry would load them, and a problem for each unusable one.
func discover(ctx context.Context, path string) (files []string, problems []manifests.Problem, err error) {
	files, err = registry.Files(ctx, path)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if err != nil {
		for _, leaf := range Leaves(err) {
			file := path
			if inFile, ok := errors.AsType[*registry.Error](leaf); ok {
				file = inFile.Name
			}
			problems = append(problems, problemIn(file, unreadable, Reason(leaf),
				"name a readable manifest, or a folder that holds some"))
		}
	}
	if len(files)+len(problems) == 0 {
		problems = append(problems, problemIn(path, mistake.Missing, "there is no manifest in this folder",
			cmp.Or(ExtismHint("caisson validate ", path), "manifests are named tool.yaml, tool.json or NAME.tool.yaml")))
	}
	return files, problems, nil
}

// ExtismHint says how to name a folder's manifest of Extism, if it has one: folders are not searched for them.
func ExtismHint(command, folder string) string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return ""
	}
	for _, entry := range entries[:min(len(entries), LookedFiles)] {
		if file := filepath.Join(folder, entry.Name()); extism.IsManifest(file) {
			return "a manifest of Extism in a folder is not found by itself; name it: " + command + terminal.Quote(file)
		}
	}
	return ""
}

// LookedFiles is among how many files of a folder manifests are looked for.
const LookedFiles = 1000

// manifestsIn reads the manifest in a file, or those that a manifest of Extism makes, with its translation.
func manifestsIn(file string) ([]*manifests.Manifest, *extism.Translated, error) {
	if extism.IsManifest(file) {
		translated, err := extism.Load(file)
		if err != nil {
			return nil, nil, err
		}
		return translated.Manifests, translated, nil
	}
	m, err := manifests.Load(file)
	if err != nil {
		return nil, nil, err
	}
	return []*manifests.Manifest{m}, nil, nil
}

// PolicyName is the usual name of a policy file.
const PolicyName = "caisson.yaml"

// policyNames are the names of policy files, whatever these contain.
var policyNames = []string{PolicyName, "caisson.yml", "caisson.json"}

// isPolicy reports whether a path is a policy by its name, its schema key, or else the better known keys.
func isPolicy(path string) bool {
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return false
	}
	if slices.Contains(policyNames, filepath.Base(path)) {
		return true
	}
	if manifests.IsManifestName(filepath.Base(path)) || extism.IsManifest(path) {
		return false
	}
	isOther := func(p manifests.Problem) bool { return p.Kind == mistake.OtherDocument }
	isSchema := func(p manifests.Problem) bool { return p.Path == "schema" }
	isUnknown := func(p manifests.Problem) bool { return p.Kind == mistake.UnknownKey }
	_, err := manifests.Load(path)
	asManifest := problemsOf(err)
	_, err = manifests.LoadPolicy(path)
	asPolicy := problemsOf(err)
	if other := count(asManifest, isOther) > 0; other != (count(asPolicy, isOther) > 0) {
		return other
	}
	if refused := count(asManifest, isSchema) > 0; !refused || count(asPolicy, isSchema) == 0 {
		return refused
	}
	return cmp.Or(cmp.Compare(count(asPolicy, isUnknown), count(asManifest, isUnknown)),
		cmp.Compare(len(asPolicy), len(asManifest))) < 0
}

func count(problems []manifests.Problem, is func(manifests.Problem) bool) (n int) {
	for _, p := range problems {
		if is(p) {
			n++
		}
	}
	return n
}

// policiesIn returns the policies in a folder itself.
func policiesIn(folder string) []string {
	var found []string
	for _, name := range policyNames {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			found = append(found, path)
		}
	}
	return found
}

// Distinct removes files that are named more than once.
func Distinct(files []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(files), func(file string) bool {
		path := absolute(file)
		known := seen[path]
		seen[path] = true
		return known
	})
}

// IsMissing reports whether no file or folder exists at a path.
func IsMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// absolute returns the absolute form of path, or path itself on failure.
func absolute(path string) string {
	if complete, err := filepath.Abs(path); err == nil {
		return complete
	}
	return path
}
