package main

import (
	"cmp"
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
	"github.com/caisson-run/caisson/runtime/extism"
)

// policyNames are the names of policy files. Files with these names are policies whatever they
// contain.
var policyNames = []string{policyName, "caisson.yml", "caisson.json"}

// isPolicy reports whether a path is a policy file: by its name, or else by its schema key. If
// neither reader accepts the schema key, it chooses the one that knows more of the other keys, or
// else reports fewer problems.
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
	_, asManifest := manifests.Load(path)
	_, asPolicy := manifests.LoadPolicy(path)
	if isOther(asManifest) != isOther(asPolicy) {
		return isOther(asManifest)
	}
	if !refusesSchema(asManifest) || !refusesSchema(asPolicy) {
		return refusesSchema(asManifest)
	}
	wrong, unknown := loadProblems(path, asManifest), func(p manifests.Problem) bool { return p.Kind == manifests.UnknownKey }
	other := loadProblems(path, asPolicy)
	return cmp.Or(cmp.Compare(countOf(other, unknown), countOf(wrong, unknown)), cmp.Compare(len(other), len(wrong))) < 0
}

func countOf(problems []manifests.Problem, is func(manifests.Problem) bool) (count int) {
	for _, p := range problems {
		if is(p) {
			count++
		}
	}
	return count
}

// isOther reports whether a reader found that a document is not of its kind.
func isOther(err error) bool {
	invalid, ok := errors.AsType[*manifests.Error](err)
	return ok && slices.ContainsFunc(invalid.Problems, func(p manifests.Problem) bool { return p.Kind == manifests.OtherDocument })
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
// on the tools validated with it and those it names, and what keeps these from being called.
func (v *validation) policy(ctx context.Context, file string, beside []*manifests.Manifest) (problems, warnings []manifests.Problem) {
	policy, err := manifests.LoadPolicy(file)
	if err != nil {
		return loadProblems(file, err), nil
	}
	tools := slices.Clone(beside)
	for i, source := range policy.Tools {
		at := fmt.Sprintf("tools[%d].path", i)
		if isMissing(source) {
			problems = append(problems, policy.Problem(at, unreadable, fmt.Sprintf("there is no file or folder %q", source), "correct the path, which starts at the policy's folder"))
			continue
		}
		loaded, empty := loadable(ctx, source)
		if tools = append(tools, loaded...); empty {
			warnings = append(warnings, policy.Problem(at, manifests.Missing, fmt.Sprintf("there is no manifest in the folder %q", source), "manifests are named tool.yaml, tool.json or NAME.tool.yaml"))
		}
		for _, m := range loaded {
			if !slices.ContainsFunc(beside, func(other *manifests.Manifest) bool { return absolute(other.File) == absolute(m.File) }) {
				unusable, _ := v.manifest(ctx, m)
				warnings = append(warnings, unusable...)
			}
		}
	}
	known := names.New()
	for _, m := range tools {
		_ = known.Add(m) // problems are reported where it is itself validated
	}
	near := func(name string) []string { return known.Nearest(name, 3) }
	profile, err := policy.ProfileNamed("")
	if err != nil {
		return append(problems, policy.Problem("profile", manifests.InvalidValue, err.Error(), "name a profile that exists")), nil
	}
	if len(problems) == 0 { // a source that is missing stops every call
		warnings = append(warnings, v.stops(ctx, file, policy, beside)...)
	}
	for _, u := range unapplied.In([]*manifests.Policy{policy}, profile, tools, near) {
		line := lineOf(u.Origin)
		if strings.HasPrefix(u.Key, "deny") && slices.ContainsFunc(warnings, func(p manifests.Problem) bool { return p.Kind == stopsCalls && p.Line == line }) {
			continue // a denial that stops every call has an effect
		}
		warnings = append(warnings, policy.Problem(u.Key, notApplied, u.Text, u.Fix))
	}
	return problems, warnings
}

// loadable returns the valid manifests of a source, and whether the source has none of any kind.
func loadable(ctx context.Context, source string) (all []*manifests.Manifest, empty bool) {
	files, err := registry.Files(ctx, source)
	for _, file := range files {
		if m, err := manifests.Load(file); err == nil {
			all = append(all, m)
		}
	}
	return all, len(files) == 0 && err == nil
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
	line := fmt.Sprintf("%s: %s; %s", u.Origin, u.Text, u.Fix)
	if strings.HasPrefix(u.Origin, "--secret ") && !strings.Contains(u.Origin, "://") {
		line += "; @HOST means https and port 443, and @SCHEME://HOST:PORT another origin"
	}
	return line
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
