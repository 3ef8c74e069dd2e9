package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/internal/names"
	"github.com/caisson-run/caisson/internal/unapplied"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
)

// policyNames are what policy files are called, whatever stands in them.
var policyNames = []string{policyName, "caisson.yml", "caisson.json"}

// isPolicy reports whether a path is a policy file: by its name, or else by its schema key,
// or else, where that is wrong for both, by what it reads better as.
func isPolicy(path string) bool {
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return false
	}
	if slices.Contains(policyNames, filepath.Base(path)) {
		return true
	}
	_, asManifest := manifests.Load(path)
	_, asPolicy := manifests.LoadPolicy(path)
	if !refusesSchema(asManifest) || !refusesSchema(asPolicy) {
		return refusesSchema(asManifest)
	}
	return len(loadProblems(path, asPolicy)) < len(loadProblems(path, asManifest))
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

// policy returns what is wrong with a policy file, and what of it changes nothing for the
// tools at hand: those that are validated with it, and those that it names.
func (v *validation) policy(ctx context.Context, file string, beside []*manifests.Manifest) (problems, warnings []manifests.Problem) {
	policy, err := manifests.LoadPolicy(file)
	if err != nil {
		return loadProblems(file, err), nil
	}
	tools := slices.Clone(beside)
	for _, source := range policy.Tools {
		if isMissing(source) {
			problems = append(problems, manifests.Problem{File: file, Line: 1, Column: 1, Path: "tools", Kind: unreadable,
				Message: fmt.Sprintf("there is no file or folder %q", source), Fix: "correct the path, which starts at the policy's folder"})
			continue
		}
		tools = append(tools, loadable(ctx, source)...)
	}
	known := names.New()
	for _, m := range tools {
		_ = known.Add(m) // what is wrong with it is reported where it is validated itself
	}
	near := func(name string) []string { return known.Nearest(name, 3) }
	for _, u := range unapplied.In([]*manifests.Policy{policy}, tools, near) {
		warnings = append(warnings, manifests.Problem{File: file, Line: lineOf(u.Origin), Column: 1, Path: u.Key,
			Kind: notApplied, Message: u.Text, Fix: u.Fix})
	}
	return problems, warnings
}

// loadable returns the manifests of a source without those that are broken, which are
// reported where the source itself is validated.
func loadable(ctx context.Context, source string) []*manifests.Manifest {
	files, _ := registry.Files(ctx, source)
	var all []*manifests.Manifest
	for _, file := range files {
		if m, err := manifests.Load(file); err == nil {
			all = append(all, m)
		}
	}
	return all
}

// lineOf returns the line in "caisson.yaml:14".
func lineOf(origin string) int {
	line, _ := strconv.Atoi(origin[strings.LastIndexByte(origin, ':')+1:])
	return max(line, 1)
}

// shownUnapplied is how many lines a denied call has about what does not apply.
const shownUnapplied = 3

// unapplied returns what the operator says that changes nothing for the loaded tools. Where
// one manifest alone is looked at, nothing can be said about the others.
func (h *host) unapplied() []caisson.Unapplied {
	if h.options.only != "" {
		return nil
	}
	return h.Unapplied()
}

// unappliedLine returns one of it for people.
func unappliedLine(u caisson.Unapplied) string {
	return fmt.Sprintf("%s: %s; %s", u.Origin, u.Text, u.Fix)
}

// unappliedHints returns the first lines of it.
func (h *host) unappliedHints() []string {
	found := h.unapplied()
	var hints []string
	for _, u := range found[:min(len(found), shownUnapplied)] {
		hints = append(hints, unappliedLine(u))
	}
	if more := len(found) - len(hints); more > 0 {
		hints = append(hints, fmt.Sprintf("%d more like these; --verbose shows all", more))
	}
	return hints
}

// noteUnapplied prints it for somebody who looks at tools.
func (h *host) noteUnapplied(env environment) {
	if h.options.quiet {
		return
	}
	for _, u := range h.unapplied() {
		printHint(env.stderr, unappliedLine(u))
	}
}

// logUnapplied logs it for somebody who wants to know all.
func (h *host) logUnapplied(ctx context.Context) {
	if h.logger == nil {
		return
	}
	for _, u := range h.unapplied() {
		h.logger.WarnContext(ctx, "not applied", "at", u.Origin, "reason", u.Text, "fix", u.Fix)
	}
}
