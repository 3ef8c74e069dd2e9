package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/internal/names"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
)

const validateHelp = `Check manifests, their modules, and policies, and report every problem. PATH is a manifest,
a policy such as caisson.yaml, or a folder. Folders are searched recursively for manifests,
and for a caisson.yaml at the top. Modules are read but never run. A policy is compared
with the tools it loads and the manifests that are checked with it; statements that apply
to none of them cause warnings.

The exit code is 2 if there are problems and 0 if there are none. Warnings do not count:
they point out what may be intended.`

// Kinds of problems that only this command finds.
const (
	unreadable    manifests.ProblemKind = "unreadable"     // a file or folder cannot be read
	badModule     manifests.ProblemKind = "module"         // the module cannot be used
	duplicateName manifests.ProblemKind = "duplicate_name" // two tools have the same name
	repeatedSeed  manifests.ProblemKind = "repeated_seed"  // calls may see the same random numbers; always a warning
	// A policy statement has no effect on the checked tools; always a warning.
	notApplied manifests.ProblemKind = "not_applied"
	// The module has no import to use a requested permission; always a warning.
	unusedPermission manifests.ProblemKind = "unused_permission"
)

func newValidate(o options) *cobra.Command {
	v := validation{options: &o}
	command := &cobra.Command{
		Use:     "validate PATH…",
		Short:   "check manifests, modules and policies",
		Long:    validateHelp,
		Example: "  caisson validate wasm-tools caisson.yaml\n  caisson validate tool.yaml --format json",
		Args:    positional(1, -1, "the PATH of a manifest, a policy or a folder"),
		RunE: func(command *cobra.Command, args []string) error {
			return v.run(command.Context(), args)
		},
	}
	command.Flags().StringVar(&v.format, "format", "", "output `FORMAT`: text or json (default text)")
	command.Flags().BoolVar(&v.noModule, "no-module", false, "do not read the modules")
	o.outputFlags(command, "the same as --format json")
	return command
}

// validation is one run of the command.
type validation struct {
	options  *options
	format   string
	noModule bool
}

// verdict is what validate prints as JSON. Manifests with warnings are valid.
type verdict struct {
	Valid    bool                `json:"valid"`
	Files    int                 `json:"files"`    // manifests
	Policies int                 `json:"policies"` // policy files
	Problems []manifests.Problem `json:"problems"`
	Warnings []manifests.Problem `json:"warnings"`
}

func (v *validation) run(ctx context.Context, paths []string) error {
	if v.options.json {
		v.format = cmp.Or(v.format, "json")
	}
	if v.format = cmp.Or(v.format, "text"); v.format != "text" && v.format != "json" {
		return failed(exitUsage, fmt.Sprintf("--format %q: there is no such format", v.format), "text and json are supported")
	}
	if v.options.json && v.format == "text" {
		return failed(exitUsage, "--json and --format text exclude each other")
	}
	verdict, err := v.check(ctx, paths)
	if err != nil {
		return err
	}
	if v.format == "json" {
		err = v.options.printJSON(verdict)
	} else {
		err = v.options.print(verdict.text(v.options.quiet))
	}
	if err == nil && !verdict.Valid {
		return &failure{code: exitUsage}
	}
	return err
}

// check checks all manifests and policies at all paths.
func (v *validation) check(ctx context.Context, paths []string) (verdict, error) {
	files, policies, problems, err := discoverAll(ctx, paths)
	if err != nil {
		return verdict{}, err
	}
	var warnings []manifests.Problem
	known, loaded := names.New(), map[string]*manifests.Manifest{}
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return verdict{}, err
		}
		m, err := manifests.Load(file)
		if err != nil {
			problems = append(problems, loadProblems(file, err)...)
			continue
		}
		wrong, doubtful := v.manifest(m)
		problems, warnings = append(problems, wrong...), append(warnings, doubtful...)
		if err := known.Add(m); err != nil {
			return verdict{}, err
		}
		loaded[m.File] = m
	}
	for _, file := range policies {
		wrong, doubtful := v.policy(ctx, file, slices.Collect(maps.Values(loaded)))
		problems, warnings = append(problems, wrong...), append(warnings, doubtful...)
	}
	for _, d := range known.Duplicates() {
		problems = append(problems, duplicateProblem(loaded[d.Dropped.File], d))
	}
	return verdict{len(problems) == 0, len(files), len(policies), list(sorted(problems)), list(sorted(warnings))}, nil
}

// manifest returns problems and warnings beyond the manifest's own text.
func (v *validation) manifest(m *manifests.Manifest) (problems, warnings []manifests.Problem) {
	problems = runtime.Check(m)
	unsupported := slices.ContainsFunc(problems, func(p manifests.Problem) bool {
		return strings.HasPrefix(p.Path, "module.") || p.Path == "execution"
	})
	if v.noModule || unsupported {
		return problems, nil
	}
	info, err := runtime.InspectModule(m)
	if err != nil {
		return append(problems, moduleProblem(m, info, err)), nil
	}
	return problems, append(seedWarnings(m, info), unusedWarnings(m, info)...)
}

func moduleProblem(m *manifests.Manifest, info runtime.ModuleInfo, err error) manifests.Problem {
	p := manifests.Problem{File: m.File, Path: "module.path", Column: 1, Kind: badModule, Message: err.Error(),
		Fix: "compile the tool as a WASI command, for Go with GOOS=wasip1 GOARCH=wasm"}
	_, statErr := os.Stat(filepath.Join(filepath.Dir(m.File), filepath.FromSlash(m.Module.Path)))
	switch {
	case errors.Is(err, runtime.ErrDigest):
		p.Path, p.Fix = "module.sha256", "find out who changed the module; if the change is wanted, pin the new digest"
	case slices.ContainsFunc(info.Imports, func(name string) bool { return strings.HasPrefix(name, "caisson:") }):
		p.Fix = "ask for the permission in the manifest, or build the module without the import"
	case errors.Is(statErr, os.ErrNotExist):
		p.Fix = "compile the tool, or skip modules with --no-module"
	}
	p.Line = max(m.Line(p.Path), 1)
	return p
}

// loadProblems returns the problems of a manifest that cannot be loaded.
func loadProblems(file string, err error) []manifests.Problem {
	var invalid *manifests.Error
	if errors.As(err, &invalid) {
		return invalid.Problems
	}
	return []manifests.Problem{{File: file, Line: 1, Column: 1, Kind: unreadable, Message: reasonOf(err), Fix: "make it a regular file that can be read"}}
}

func duplicateProblem(m *manifests.Manifest, d *registry.DuplicateError) manifests.Problem {
	key, fix := "name", "give one of the tools another name"
	if d.Dropped.Alias {
		key, fix = "aliases", "remove the alias"
	}
	return manifests.Problem{File: m.File, Line: max(m.Line(key), 1), Column: 1, Path: key, Kind: duplicateName, Message: d.Error(), Fix: fix}
}

// distinct removes files that are named more than once.
func distinct(files []string) []string {
	seen := map[string]bool{}
	var kept []string
	for _, file := range files {
		absolute, err := filepath.Abs(file)
		if err != nil {
			absolute = filepath.Clean(file)
		}
		if !seen[absolute] {
			seen[absolute] = true
			kept = append(kept, file)
		}
	}
	return kept
}

// sorted sorts the problems by file and position.
func sorted(problems []manifests.Problem) []manifests.Problem {
	slices.SortStableFunc(problems, func(a, b manifests.Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return problems
}

// seedWarnings reports a manifest whose calls resume from a snapshot although the module links
// generators that would then give each call the same random numbers.
func seedWarnings(m *manifests.Manifest, info runtime.ModuleInfo) []manifests.Problem {
	if m.Behavior.Snapshot != manifests.SnapshotStart || len(info.SeededGenerators) == 0 {
		return nil
	}
	const key = "behavior.snapshot"
	return []manifests.Problem{{
		File: m.File, Line: max(m.Line(key), 1), Column: 1, Path: key, Kind: repeatedSeed,
		Message: "the module links " + strings.Join(info.SeededGenerators, ", ") +
			"; its numbers repeat in calls that resume from a snapshot, if it is seeded before the program reads its input",
		Fix: "use a generator that is seeded after the input is read, as SNAPSHOTS.md shows for each language; or write snapshot: off",
	}}
}

// unusedWarnings reports permissions that the module has no import to use. A tool that asks for
// less is trusted more easily.
func unusedWarnings(m *manifests.Manifest, info runtime.ModuleInfo) []manifests.Problem {
	var warnings []manifests.Problem
	for _, key := range info.Unused {
		warnings = append(warnings, manifests.Problem{
			File: m.File, Line: max(m.Line(key), 1), Column: 1, Path: key, Kind: unusedPermission,
			Message: "the manifest asks for it, but the module has no import to use it",
			Fix:     "remove the permission, or build the module with code that uses it",
		})
	}
	return warnings
}

// text returns the verdict as text for people.
func (v verdict) text(quiet bool) string {
	var b strings.Builder
	broken := map[string]bool{}
	for _, p := range v.Problems {
		broken[p.File] = true
		b.WriteString(problemLines(p, ""))
	}
	for _, p := range v.Warnings {
		b.WriteString(problemLines(p, "warning: "))
	}
	if quiet {
		return b.String()
	}
	switch {
	case !v.Valid:
		b.WriteString(count(len(v.Problems), "problem") + " in " + count(len(broken), "file"))
	case v.Policies == 0:
		b.WriteString(valid(v.Files, "manifest", "manifests"))
	case v.Files == 0:
		b.WriteString(valid(v.Policies, "policy", "policies"))
	default:
		b.WriteString(valid(v.Files, "manifest", "manifests") + ", " + valid(v.Policies, "policy", "policies"))
	}
	if n := len(v.Warnings); n > 0 {
		b.WriteString(", " + count(n, "warning"))
	}
	return b.String() + "\n"
}

func valid(n int, one, many string) string {
	if n == 1 {
		return "1 " + one + " is valid"
	}
	return fmt.Sprintf("%d %s are valid", n, many)
}

// problemLines returns a problem, with a prefix before its message, and its fix.
func problemLines(p manifests.Problem, prefix string) string {
	return sanitiseLine(placeOf(p)+prefix+p.Message) + "\n  fix: " + sanitiseLine(p.Fix) + "\n"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
