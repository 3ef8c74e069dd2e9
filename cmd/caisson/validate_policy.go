package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/caisson-run/caisson/manifests"
)

// policyNames are what policy files are called, whatever stands in them.
var policyNames = []string{policyName, "caisson.yml", "caisson.json"}

// isPolicy reports whether a path is a policy file: by its name, or else by its schema key,
// if it is not a valid manifest.
func isPolicy(path string) bool {
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return false
	}
	if slices.Contains(policyNames, filepath.Base(path)) {
		return true
	}
	_, asManifest := manifests.Load(path)
	_, asPolicy := manifests.LoadPolicy(path)
	return refusesSchema(asManifest) && !refusesSchema(asPolicy)
}

// refusesSchema reports whether a document has another schema than its reader wants.
func refusesSchema(err error) bool {
	var invalid *manifests.Error
	return errors.As(err, &invalid) && slices.ContainsFunc(invalid.Problems, func(p manifests.Problem) bool { return p.Path == "schema" })
}

// policiesIn returns the policies that lie in a folder itself.
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

func policyProblems(file string) []manifests.Problem {
	if _, err := manifests.LoadPolicy(file); err != nil {
		return loadProblems(file, err)
	}
	return nil
}
