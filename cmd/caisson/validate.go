package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/internal/names"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/runtime/extism"
)

const validateHelp = `Check manifests, their modules, and policies, and report every problem. PATH is a manifest,
a manifest of Extism, a policy such as caisson.yaml, or a folder. Folders are searched
recursively for manifests, and for a caisson.yaml at the top. Modules are read but never
run. A policy's rules are compared with the tools that it loads and with the manifests that
are checked in the same command. A rule that applies to none of these causes a warning. So
does whatever would make every call of a tool fail, such as a grant of a directory that does
not exist, or a manifest among the policy's tools that cannot be read.

The exit code is 2 if there are problems and 0 if there are none. Warnings change it only
with --strict, since what they point out may be intended.`

// Kinds of problems that only this command finds.
const (
	unreadable    manifests.ProblemKind = "unreadable"     // a file or folder cannot be read
	badModule     manifests.ProblemKind = "module"         // the module cannot be used
	duplicateName manifests.ProblemKind = "duplicate_name" // two tools have the same name
	repeatedSeed  manifests.ProblemKind = "repeated_seed"  // calls may see the same random numbers; always a warning
	// A policy statement has no effect on the checked tools; always a warning.
	notApplied manifests.ProblemKind = "not_applied"
	// No call of a tool can run under the policy on this machine; always a warning.
	stopsCalls manifests.ProblemKind = "stops_calls"
	// The module has no import to use a requested permission; always a warning.
	unusedPermission manifests.ProblemKind = "unused_permission"
	// Neither the module nor a library that it needs imports from a library; always a warning.
	unusedLibrary manifests.ProblemKind = "unused_library"
	// The module imports functions that only an embedding program can offer; always a warning.
	needsProgram manifests.ProblemKind = "needs_program"
	// A default does not fit its own schema; always a warning.
	unusedDefault manifests.ProblemKind = "unused_default"
	// Arguments are inserted into text that may be a script; always a warning.
	codeInjection manifests.ProblemKind = "code_injection"
	// The tool to use instead of a deprecated one is not among those checked; always a warning.
	unknownSuccessor manifests.ProblemKind = "unknown_successor"
	// A parameter cannot be passed as the manifest says; always a warning.
	unusableParameter manifests.ProblemKind = "unusable_parameter"
	// The module needs more memory to start than it may have; always a warning.
	oversizeModule manifests.ProblemKind = "oversize_module"
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
	command.Flags().StringVar(&v.format, "format", "", "print `FORMAT`: text or json (default text)")
	command.Flags().BoolVar(&v.strict, "strict", false, "exit with 2 if there are warnings, too")
	command.Flags().BoolVar(&v.noModule, "no-module", false, "do not read the modules")
	o.outputFlags(command, "the same as --format json")
	command.Flags().Lookup("quiet").Usage = "print problems and warnings only: no summary"
	return command
}

// validation is one run of the command.
type validation struct {
	options  *options
	format   string
	noModule bool
	strict   bool
}

// verdict is what validate prints as JSON. Manifests with warnings are valid, except with --strict.
type verdict struct {
	Valid    bool                `json:"valid"`
	Files    int                 `json:"files"`    // manifests
	Policies int                 `json:"policies"` // policy files
	Problems []manifests.Problem `json:"problems"`
	Warnings []manifests.Problem `json:"warnings"`
	// Translated says what manifests of Extism are in Caisson.
	Translated []translation `json:"translated"`
}

// translation is what a manifest of Extism is in Caisson.
type translation struct {
	File    string             `json:"file"`
	Tools   []string           `json:"tools"`
	Members []translatedMember `json:"members"`
}

type translatedMember struct {
	Member string `json:"member"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Is     string `json:"is"` // such as "limits.timeout: 100ms"
}

func translationOf(file string, translated *extism.Translated) translation {
	t := translation{File: file, Tools: []string{}, Members: []translatedMember{}}
	for _, m := range translated.Manifests {
		t.Tools = append(t.Tools, m.Name)
	}
	for _, m := range translated.Members {
		t.Members = append(t.Members, translatedMember{m.Key, m.Line, m.Column, m.Text})
	}
	return t
}

// text returns the translation as text for people.
func (t translation) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: a manifest of Extism, of which Caisson makes %s\n", sanitiseLine(t.File), strings.Join(t.Tools, ", "))
	for _, m := range t.Members {
		fmt.Fprintf(&b, "  %s\n", sanitiseLine(m.Member+" is "+m.Is))
	}
	return b.String()
}

func (v *validation) run(ctx context.Context, paths []string) error {
	if v.options.json {
		v.format = cmp.Or(v.format, "json")
	}
	if v.format = cmp.Or(v.format, "text"); v.format != "text" && v.format != "json" {
		return failed(exitUsage, fmt.Sprintf("--format %q: there is no such format", v.format), "text and json are supported")
	}
	if v.options.json && v.format == "text" {
		return failed(exitUsage, "--json and --format text cannot be used together")
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
	var broken []string // names in broken manifests
	translations := []translation{}
	known, loaded := names.New(), map[string]*manifests.Manifest{}
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return verdict{}, err
		}
		read, translated, err := manifestsIn(file)
		if err != nil {
			problems = append(problems, loadProblems(file, err)...)
			if invalid, ok := errors.AsType[*manifests.Error](err); ok {
				broken = append(broken, invalid.Names...)
			}
			continue
		}
		if translated != nil {
			warnings = append(warnings, translated.Notes...)
			translations = append(translations, translationOf(file, translated))
		}
		wrong, doubtful := v.manifests(ctx, read)
		problems, warnings = append(problems, wrong...), append(warnings, doubtful...)
		for _, m := range read {
			if err := known.Add(m); err != nil {
				return verdict{}, err
			}
			loaded[m.File+"\x00"+m.Name] = m
		}
	}
	tools := slices.Collect(maps.Values(loaded))
	warnings = append(warnings, successors(tools, known, broken)...)
	for _, file := range policies {
		wrong, doubtful := v.policy(ctx, file, tools)
		problems, warnings = append(problems, wrong...), append(warnings, doubtful...)
	}
	for _, d := range known.Duplicates() {
		problems = append(problems, duplicateProblem(droppedOf(loaded, d), d))
	}
	return verdict{len(problems) == 0 && (!v.strict || len(warnings) == 0), len(files), len(policies), list(sorted(problems)), list(sorted(warnings)), translations}, nil
}

// manifestsIn reads the manifest in a file, or those that a manifest of Extism makes, with what else the
// translation says.
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

// droppedOf returns the manifest of a tool whose name is another's.
func droppedOf(loaded map[string]*manifests.Manifest, d *registry.DuplicateError) *manifests.Manifest {
	for _, m := range loaded {
		if m.File == d.Dropped.File && slices.Contains(slices.Concat([]string{m.Name}, m.Aliases), d.Name) {
			return m
		}
	}
	for _, m := range loaded {
		if m.File == d.Dropped.File {
			return m
		}
	}
	return nil
}

// manifests returns problems and warnings beyond the text of the manifests of a file. What holds for several
// functions of a plug-in is said once.
func (v *validation) manifests(ctx context.Context, all []*manifests.Manifest) (problems, warnings []manifests.Problem) {
	said := map[manifests.Problem]bool{}
	isSaid := func(p manifests.Problem) bool {
		again := said[p]
		said[p] = true
		return again
	}
	for _, m := range all {
		wrong, doubtful := v.manifest(ctx, m)
		problems = append(problems, slices.DeleteFunc(wrong, isSaid)...)
		warnings = append(warnings, slices.DeleteFunc(doubtful, isSaid)...)
	}
	return problems, warnings
}

// manifest returns problems and warnings beyond the manifest's own text.
func (v *validation) manifest(ctx context.Context, m *manifests.Manifest) (problems, warnings []manifests.Problem) {
	problems, warnings = runtime.Check(m), slices.Concat(unusedDefaults(ctx, m), scripts(m), unusable(m))
	unsupported := slices.ContainsFunc(problems, func(p manifests.Problem) bool {
		return strings.HasPrefix(p.Path, "module.") || p.Path == "execution"
	})
	if v.noModule || unsupported {
		return problems, warnings
	}
	info, err := runtime.InspectModule(m)
	if err != nil {
		return append(problems, moduleProblem(m, err)), warnings
	}
	return problems, append(warnings, warningsOf(m, info)...)
}

func moduleProblem(m *manifests.Manifest, err error) manifests.Problem {
	key, text, fix := "module.path", err.Error(), "compile the tool as a WASI command, for Go with GOOS=wasip1 GOARCH=wasm"
	file := m.Module.Path
	if m.Module.Language != manifests.LanguageNone {
		key, fix = "module.script", "correct the script or its packages"
	}
	if library := libraryOf(err); library != "" {
		key, file, fix = keypath.Key("module.libraries", library), m.Module.Libraries[library], "name a WebAssembly module in the manifest's folder"
	}
	switch problem, advice, ok := problemOf(err); {
	case ok:
		text, fix = problem, advice
	case errors.Is(err, runtime.ErrDigest):
		key, fix = "module.sha256", "find out who changed the module; if the change is wanted, pin the new digest"
	case m.Module.Language == manifests.LanguageNone && isMissing(filepath.Join(filepath.Dir(m.File), filepath.FromSlash(file))):
		fix = "compile the tool, or skip modules with --no-module"
	}
	return m.Problem(key, badModule, text, fix)
}

// libraryOf returns the name of the library that an error about a module is about, or "".
func libraryOf(err error) string {
	var about interface {
		error
		Library() string
	}
	if !errors.As(err, &about) {
		return ""
	}
	return about.Library()
}

// problemOf returns the parts of an error that says what to do about a module.
func problemOf(err error) (text, fix string, ok bool) {
	var advising interface {
		error
		Problem() (text, fix string)
	}
	if !errors.As(err, &advising) {
		return "", "", false
	}
	text, fix = advising.Problem()
	return text, fix, fix != ""
}

// problemIn returns a problem of a whole file or folder.
func problemIn(file string, kind manifests.ProblemKind, message, fix string) manifests.Problem {
	return manifests.Problem{File: file, Line: 1, Column: 1, Kind: kind, Message: message, Fix: fix}
}

// loadProblems returns the problems of a manifest that cannot be loaded.
func loadProblems(file string, err error) []manifests.Problem {
	if invalid, ok := errors.AsType[*manifests.Error](err); ok {
		return invalid.Problems
	}
	return []manifests.Problem{problemIn(file, unreadable, reasonOf(err), "make it a regular file of at most 1 MiB that can be read")}
}

func duplicateProblem(m *manifests.Manifest, d *registry.DuplicateError) manifests.Problem {
	key, fix := "name", "give one of the tools another name"
	if d.Dropped.Alias {
		key, fix = "aliases", "remove the alias"
	}
	return m.Problem(key, duplicateName, d.Error(), fix)
}

// distinct removes files that are named more than once.
func distinct(files []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(files), func(file string) bool {
		path := absolute(file)
		known := seen[path]
		seen[path] = true
		return known
	})
}

// sorted sorts the problems by file and position.
func sorted(problems []manifests.Problem) []manifests.Problem {
	slices.SortStableFunc(problems, func(a, b manifests.Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return problems
}

// warningsOf returns warnings about what a manifest says of its module: calls that resume from a
// snapshot although the module links generators that would then give each call the same random
// numbers, libraries that nothing imports from, and permissions that the module has no import to use.
// A tool that requests less is trusted more easily.
func warningsOf(m *manifests.Manifest, info runtime.ModuleInfo) []manifests.Problem {
	warnings := oversize(m, info)
	if m.Behavior.Snapshot == manifests.SnapshotStart && len(info.SeededGenerators) > 0 {
		warnings = append(warnings, m.Problem("behavior.snapshot", repeatedSeed, "the module links "+strings.Join(info.SeededGenerators, ", ")+
			"; its numbers repeat in calls that resume from a snapshot, if it is seeded before the program reads its input",
			"use a generator that is seeded after the input is read, as SNAPSHOTS.md shows for each language; or write snapshot: off"))
	}
	if len(info.HostFunctions) > 0 {
		warnings = append(warnings, m.Problem("permissions.functions", needsProgram,
			"only a program that embeds Caisson and offers "+strings.Join(info.HostFunctions, ", ")+" can run it; this command offers no functions",
			"offer them with runtime.Options.HostFunctions, and grant them in the policy, as docs/extism.md says"))
	}
	for _, library := range info.Libraries {
		if library.Unused {
			warnings = append(warnings, m.Problem(keypath.Key("module.libraries", library.Name), unusedLibrary,
				fmt.Sprintf("nothing imports from %q, but every call gets an instance of it", library.Name),
				"remove it, or give it the name from which the module imports"))
		}
	}
	for _, key := range info.Unused {
		warnings = append(warnings, m.Problem(key, unusedPermission, "the manifest requests it, but the module has no import to use it",
			"remove the permission, or build the module with code that uses it"))
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
	for _, t := range v.Translated {
		b.WriteString(t.text())
	}
	var counts []string
	if len(v.Problems) > 0 {
		counts = append(counts, count(len(v.Problems), "problem")+" in "+count(len(broken), "file"))
	} else if v.Valid {
		if v.Files > 0 || v.Policies == 0 {
			counts = append(counts, valid(v.Files, "manifest", "manifests"))
		}
		if v.Policies > 0 {
			counts = append(counts, valid(v.Policies, "policy", "policies"))
		}
	}
	if n := len(v.Warnings); n > 0 && !v.Valid && len(v.Problems) == 0 {
		counts = append(counts, count(n, "warning")+", and --strict allows none")
	} else if n > 0 {
		counts = append(counts, count(n, "warning"))
	}
	return b.String() + strings.Join(counts, ", ") + "\n"
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
