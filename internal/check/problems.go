package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
)

// Kinds of problems that no reader of one manifest finds.
const (
	unreadable    mistake.Kind = "unreadable"     // a file or folder cannot be read
	badModule     mistake.Kind = "module"         // the module cannot be used
	duplicateName mistake.Kind = "duplicate_name" // two tools have the same name
	repeatedSeed  mistake.Kind = "repeated_seed"  // calls may see the same random numbers; always a warning
	// A policy statement has no effect on the checked tools; always a warning.
	notApplied mistake.Kind = "not_applied"
	// No call of a tool can run under the policy on this machine; always a warning.
	stopsCalls mistake.Kind = "stops_calls"
	// The module has no import to use a requested permission; always a warning.
	unusedPermission mistake.Kind = "unused_permission"
	// Neither the module nor a library that it needs imports from a library; always a warning.
	unusedLibrary mistake.Kind = "unused_library"
	// The module imports functions that only an embedding program can offer; always a warning.
	needsProgram mistake.Kind = "needs_program"
	// A default does not fit its own schema; always a warning.
	unusedDefault mistake.Kind = "unused_default"
	// Arguments are inserted into text that may be a script; always a warning.
	codeInjection mistake.Kind = "code_injection"
	// The tool to use instead of a deprecated one is not among those checked; always a warning.
	unknownSuccessor mistake.Kind = "unknown_successor"
	// A parameter cannot be passed as the manifest says; always a warning.
	unusableParameter mistake.Kind = "unusable_parameter"
	// The module needs more memory to start than it may have; always a warning.
	oversizeModule mistake.Kind = "oversize_module"
)

// problemIn returns a problem of a whole file or folder.
func problemIn(file string, kind mistake.Kind, message, fix string) manifests.Problem {
	return manifests.Problem{File: file, Line: 1, Column: 1, Kind: kind, Message: message, Fix: fix}
}

func loadProblems(file string, err error) []manifests.Problem {
	if problems := problemsOf(err); problems != nil {
		return problems
	}
	return []manifests.Problem{problemIn(file, unreadable, Reason(err),
		"make it a regular file of at most 1 MiB that can be read")}
}

func problemsOf(err error) []manifests.Problem {
	if invalid, ok := errors.AsType[*manifests.Error](err); ok {
		return invalid.Problems
	}
	return nil
}

// sorted returns the problems by file and position, not nil.
func sorted(problems []manifests.Problem) []manifests.Problem {
	all := append([]manifests.Problem{}, problems...)
	slices.SortStableFunc(all, func(a, b manifests.Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return all
}

// Unloaded returns the reasons why tools were not loaded: of each broken manifest the first problem, with what follows
// from it. problem is an element of [caisson.Host.Problems].
func Unloaded(problem error) []manifests.Problem {
	source, _ := problem.(*registry.Error)
	return notLoaded(source, Leaves(problem))
}

// notLoaded returns a problem for each error of a source that was not loaded, or of a broken manifest if source is nil.
func notLoaded(source *registry.Error, leaves []error) []manifests.Problem {
	var all []manifests.Problem
	from := ""
	if source != nil {
		from = source.Name
	}
	for _, leaf := range leaves {
		broken, invalid := errors.AsType[*manifests.Error](leaf)
		inFile, scanned := errors.AsType[*registry.Error](leaf)
		duplicate, taken := errors.AsType[*registry.DuplicateError](leaf)
		switch {
		case invalid && source == nil:
			all = append(all, firstOf(broken, fmt.Sprintf("so the tool %s is not loaded, and no other gets its name",
				broken.Names[0])))
		case invalid && len(broken.Names) == 0:
			all = append(all, firstOf(broken, fmt.Sprintf("so the tool's name cannot be read, and nothing from %s is loaded",
				from)))
		case invalid:
			all = append(all, firstOf(broken, ""))
		case taken:
			all = append(all, lookAlikeProblem(duplicate))
		case scanned:
			all = append(all, problemIn(inFile.Name, unreadable, Reason(leaf),
				"make it a regular file of at most 1 MiB that can be read, or remove it"))
		case errors.Is(leaf, manifests.ErrFile):
			all = append(all, problemIn(from, unreadable, leaf.Error(),
				"make it a regular file of at most 1 MiB that can be read"))
		default:
			all = append(all, problemIn(from, unreadable, Text(leaf), "correct the manifests there"))
		}
	}
	return all
}

// lookAlikeProblem returns the problem of a tool whose name looks like another's, at the place of the name.
func lookAlikeProblem(d *registry.DuplicateError) manifests.Problem {
	read, _, err := manifestsIn(d.Dropped.File)
	at := slices.IndexFunc(read, func(m *manifests.Manifest) bool { return m.Name == d.Name })
	if err != nil || at < 0 { // the file has changed since
		return problemIn(d.Dropped.File, duplicateName, d.Error(), FixDuplicate)
	}
	return read[at].Problem("name", duplicateName, d.Error(), FixDuplicate)
}

// firstOf returns the first problem of a broken manifest, and what follows from it.
func firstOf(broken *manifests.Error, follows string) manifests.Problem {
	p := broken.Problems[0]
	if follows != "" {
		p.Message += ", " + follows
	}
	p.Fix = terminal.ToRun("caisson validate " + terminal.Quote(p.File))
	return p
}

// FixDuplicate says what to do about two tools with one name, or with names that look alike.
const FixDuplicate = "rename one of the two, or load only one: people who read the name cannot tell which tool it is"
