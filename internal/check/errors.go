package check

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
)

// Leaves returns the errors that were joined, even if wrapped since. It omits text that wraps a
// join, because the leaves name their files.
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
