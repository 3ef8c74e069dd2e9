package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/internal/names"
	"github.com/caisson-run/caisson/internal/unapplied"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
)

// policyNames are the names of policy files. Files with these names are policies whatever they
// contain.
var policyNames = []string{policyName, "caisson.yml", "caisson.json"}

// isPolicy reports whether a path is a policy file: by its name, or else by its schema key. If
// neither reader accepts the schema key, it chooses the one that reports fewer problems.
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

// refusesSchema reports whether a reader rejected the document's schema key.
func refusesSchema(err error) bool {
	invalid, ok := errors.AsType[*manifests.Error](err)
	return ok && slices.ContainsFunc(invalid.Problems, func(p manifests.Problem) bool { return p.Path == "schema" })
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

// policy returns the problems of a policy file. The warnings are its statements that have no effect
// on the tools validated with it and those it names.
func (v *validation) policy(ctx context.Context, file string, beside []*manifests.Manifest) (problems, warnings []manifests.Problem) {
	policy, err := manifests.LoadPolicy(file)
	if err != nil {
		return loadProblems(file, err), nil
	}
	tools := slices.Clone(beside)
	for _, source := range policy.Tools {
		if isMissing(source) {
			problem := problemIn(file, unreadable, fmt.Sprintf("there is no file or folder %q", source), "correct the path, which starts at the policy's folder")
			problem.Path = "tools"
			problems = append(problems, problem)
			continue
		}
		tools = append(tools, loadable(ctx, source)...)
	}
	known := names.New()
	for _, m := range tools {
		_ = known.Add(m) // problems are reported where it is itself validated
	}
	near := func(name string) []string { return known.Nearest(name, 3) }
	profile, err := policy.ProfileNamed("")
	if err != nil {
		problem := problemIn(file, manifests.InvalidValue, err.Error(), "name a profile that exists")
		problem.Path = "profile"
		return append(problems, problem), nil
	}
	warnings = stops(ctx, file, policy, beside)
	for _, u := range unapplied.In([]*manifests.Policy{policy}, profile, tools, near) {
		line := lineOf(u.Origin)
		if strings.HasPrefix(u.Key, "deny") && slices.ContainsFunc(warnings, func(p manifests.Problem) bool { return p.Kind == stopsCalls && p.Line == line }) {
			continue // a denial that stops every call has an effect
		}
		warnings = append(warnings, manifests.Problem{File: file, Line: line, Column: 1, Path: u.Key,
			Kind: notApplied, Message: u.Text, Fix: u.Fix})
	}
	return problems, warnings
}

// stops returns warnings about what keeps tools from being loaded under a policy. It loads them, which
// runs nothing.
func stops(ctx context.Context, file string, policy *manifests.Policy, beside []*manifests.Manifest) []manifests.Problem {
	var files []string
	for _, m := range beside {
		files = append(files, m.File)
	}
	h, err := caisson.Open(ctx, caisson.Options{Policies: []*manifests.Policy{policy}, Tools: files, NoCache: true})
	if err == nil {
		_ = h.Close(context.WithoutCancel(ctx)) // nothing has run
		return nil
	}
	const fix = "correct the entry, or make what it names"
	failed, ok := errors.AsType[*caisson.Error](err)
	if !ok || failed.Kind != caisson.ErrTools {
		return []manifests.Problem{problemIn(file, stopsCalls, "no tool could be called under this policy: "+err.Error(), fix)}
	}
	var warnings []manifests.Problem
	known := map[string]bool{}
	for _, leaf := range leavesOf(failed.Err) {
		name, text, granted := strings.Cut(leaf.Error(), ": runtime: ")
		same := strings.ReplaceAll(text, name, "")
		if !granted || known[same] { // other problems are reported with the manifests
			continue
		}
		known[same] = true
		problem := problemIn(file, stopsCalls, fmt.Sprintf("no tool could be called under this policy: %s: %s", name, text), fix)
		if at := originIn.FindString(text); at != "" {
			problem.Line = lineOf(at)
		}
		warnings = append(warnings, problem)
	}
	return warnings
}

// originIn is where a text names a line of a policy: "caisson.yaml:14".
var originIn = regexp.MustCompile(`\S+\.(?:ya?ml|json):[0-9]+`)

// loadable returns the valid manifests of a source. Invalid ones are reported when the source
// itself is validated.
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

// shownUnapplied is the maximum number of unapplied statements shown for a denied call.
const shownUnapplied = 3

// unapplied returns the operator's statements that have no effect on the loaded tools. If only one
// manifest is inspected, they may apply to others, so it returns none.
func (h *host) unapplied() []caisson.Unapplied {
	if h.options.only != "" {
		return nil
	}
	return h.Unapplied()
}

// unappliedLine describes an unapplied statement for people.
func unappliedLine(u caisson.Unapplied) string {
	return fmt.Sprintf("%s: %s; %s", u.Origin, u.Text, u.Fix)
}

// unappliedHints describes the first few unapplied statements.
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

// noteUnapplied prints the unapplied statements as hints.
func (h *host) noteUnapplied() {
	for _, u := range h.unapplied() {
		h.options.hint(unappliedLine(u))
	}
}

// logUnapplied logs the unapplied statements with --verbose.
func (h *host) logUnapplied(ctx context.Context) {
	if h.logger == nil {
		return
	}
	for _, u := range h.unapplied() {
		h.logger.WarnContext(ctx, "not applied", "at", u.Origin, "reason", u.Text, "fix", u.Fix)
	}
}
