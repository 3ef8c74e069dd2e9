package check

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
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

// Unloaded returns why tools were not loaded. problem is an element of [caisson.Host.Problems].
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

// Leaves returns the errors that were joined, without the text around them: the leaves name their files.
func Leaves(err error) []error {
	switch e := err.(type) {
	case *manifests.Error:
		return []error{e}
	case interface{ Unwrap() []error }:
		children := e.Unwrap()
		if isJoin(err, children) {
			var leaves []error
			for _, child := range children {
				leaves = append(leaves, Leaves(child)...)
			}
			return leaves
		}
	case *registry.Error:
		if e.Op == "load" {
			return Leaves(e.Err)
		}
	case interface{ Unwrap() error }:
		inner := Leaves(e.Unwrap())
		if len(inner) > 1 {
			return inner
		}
	}
	return []error{err}
}

// isJoin reports whether the error's text is the lines of its children and nothing more.
func isJoin(err error, children []error) bool {
	texts := make([]string, len(children))
	for i, child := range children {
		texts[i] = child.Error()
	}
	return strings.Join(texts, "\n") == err.Error()
}

// Advice returns the parts of an error that says what to do about a module.
func Advice(err error) (text, fix string, ok bool) {
	advising, ok := errors.AsType[interface {
		error
		Problem() (text, fix string)
	}](err)
	if ok {
		text, fix = advising.Problem()
	}
	return text, fix, fix != ""
}

// Text returns the text of an error. Of one about a tool that cannot be loaded, it leaves out the operation.
func Text(err error) string {
	if failure, ok := errors.AsType[*runtime.Error](err); ok && failure.Tool != "" {
		return failure.Tool + ": " + failure.Err.Error()
	}
	return err.Error()
}

// Reason returns an error's text without the path, which is printed separately.
func Reason(err error) string {
	if inPath, ok := errors.AsType[*fs.PathError](err); ok {
		return inPath.Err.Error()
	}
	if inRegistry, ok := errors.AsType[*registry.Error](err); ok {
		return inRegistry.Err.Error()
	}
	return err.Error()
}
