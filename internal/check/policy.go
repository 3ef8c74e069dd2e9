package check

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/names"
	"github.com/caisson-run/caisson/internal/unapplied"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
)

// policy returns the problems of a policy file. The warnings are its statements that have no effect
// on the tools validated with it and those it names, and what keeps these from being called.
func (c *checker) policy(ctx context.Context, file string, checked []*manifests.Manifest) (
	problems, warnings []manifests.Problem,
) {
	policy, err := manifests.LoadPolicy(file)
	if err != nil {
		return loadProblems(file, err), nil
	}
	tools := slices.Clone(checked)
	for i, source := range policy.Tools {
		at := fmt.Sprintf("tools[%d].path", i)
		if IsMissing(source) {
			problems = append(problems, policy.Problem(at, unreadable, fmt.Sprintf("there is no file or folder %q", source),
				"correct the path, which starts at the policy's folder"))
			continue
		}
		loaded, empty := loadable(ctx, source)
		if tools = append(tools, loaded...); empty {
			warnings = append(warnings, policy.Problem(at, mistake.Missing,
				fmt.Sprintf("there is no manifest in the folder %q", source),
				"manifests are named tool.yaml, tool.json or NAME.tool.yaml"))
		}
		for _, m := range loaded {
			isSame := func(other *manifests.Manifest) bool { return absolute(other.File) == absolute(m.File) }
			if !slices.ContainsFunc(checked, isSame) {
				unusable, _ := c.manifest(ctx, m)
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
		return append(problems, policy.Problem("profile", mistake.InvalidValue, err.Error(),
			"name a profile that exists")), nil
	}
	if len(problems) == 0 { // a source that is missing stops every call
		warnings = append(warnings, c.stops(ctx, file, policy, checked)...)
	}
	for _, u := range unapplied.In([]*manifests.Policy{policy}, profile, tools, near) {
		line, _ := strconv.Atoi(u.Origin[strings.LastIndexByte(u.Origin, ':')+1:]) // of "caisson.yaml:14"
		line = max(line, 1)
		if strings.HasPrefix(u.Key, "deny") &&
			slices.ContainsFunc(warnings, func(p manifests.Problem) bool { return p.Kind == stopsCalls && p.Line == line }) {
			continue // a denial that stops every call has an effect
		}
		warnings = append(warnings, policy.Problem(u.Key, notApplied, u.Text, u.Fix))
	}
	return problems, warnings
}

// successors returns a warning for each deprecated tool whose successor is not among the tools, nor among the names
// that broken manifests claim. If only one tool is checked, its successor may be elsewhere.
func successors(tools []*manifests.Manifest, known *names.Names, broken []string) (warnings []manifests.Problem) {
	for _, m := range tools {
		if m.Deprecated == nil || m.Deprecated.Use == "" || len(tools) == 1 || known.Has(m.Deprecated.Use) ||
			slices.Contains(broken, m.Deprecated.Use) {
			continue
		}
		fix := "correct the name, or check the manifest together with that of the tool"
		if near := known.Nearest(m.Deprecated.Use, 1); len(near) > 0 {
			fix = "did you mean " + near[0] + "?"
		}
		warnings = append(warnings, m.Problem("deprecated.use", unknownSuccessor,
			fmt.Sprintf("there is no tool %q here", m.Deprecated.Use), fix))
	}
	return warnings
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
