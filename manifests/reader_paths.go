package manifests

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/permission"
)

const (
	maxHostPath = 4096 // bytes
	hostPathFix = "write a path such as ./workspaces, which starts at this file's folder, or an absolute one"
)

// hostPath reads a host path. A relative path is joined to the directory of the file.
func (r *reader) hostPath(n *node, at string) string {
	text := r.text(n, at)
	n.noteBytes(1, maxHostPath)
	if n.kind != textNode {
		return ""
	}
	switch {
	case text == "":
		r.invalid(n, at, "the path is empty", hostPathFix)
	case len(text) > maxHostPath:
		r.outOfRange(n, at, fmt.Sprintf("%d bytes are over the limit of %d", len(text), maxHostPath), "make the path shorter")
	case strings.ContainsAny(text, "\n\t"):
		r.invalid(n, at, "line breaks and tabs are not allowed here", hostPathFix)
	case !r.visible(n.at, at, text):
	case text == "~" || strings.HasPrefix(text, "~/"):
		r.invalid(n, at, "~ does not stand for the home folder here", "write the path out; a folder that is called ~ is ./~")
	case strings.Contains(text, "://"):
		r.invalid(n, at, fmt.Sprintf("%q is not a path", clip(text)), hostPathFix)
	default:
		return joinPath(r.file, text)
	}
	return ""
}

// joinPath returns a path in a file as a path relative to the working directory.
func joinPath(file, path string) string {
	if filepath.IsAbs(path) || filepath.VolumeName(path) != "" || os.IsPathSeparator(path[0]) {
		return filepath.Clean(path)
	}
	return filepath.Join(filepath.Dir(file), path)
}

// hostTemplate reads a host path whose elements may be context values. It is parsed before it is
// cleaned, because cleaning would let a ".." remove a context value.
func (r *reader) hostTemplate(n *node, at string) permission.HostTemplate {
	none := permission.HostTemplate{}
	path := r.hostPath(n, at)
	if path == "" {
		return none
	}
	template, err := permission.ParseHostTemplate(n.text)
	if err != nil {
		r.unreadable(n.at, at, n.text, err)
		return none
	}
	if path != filepath.Clean(n.text) && strings.ContainsAny(filepath.Dir(r.file), "{}") {
		r.invalid(n, at, "the folder of this file has braces in its name, which would stand for a context value",
			"move the file, or write an absolute path")
		return none
	}
	return template.In(filepath.Dir(r.file))
}

// absolute makes a path independent of the working directory. It quotes the result, because JSON
// cannot hold bytes that are not UTF-8 and two paths would become one.
func absolute(path *string) error {
	if *path == "" {
		return nil
	}
	whole, err := filepath.Abs(*path)
	*path = strconv.Quote(whole)
	return err
}

// valueOf reads a value of a permission.
func valueOf[V any](r *reader, parse func(string) (V, error)) parser[V] {
	return func(n *node, at string) (none V) {
		text := r.text(n, at)
		n.note("minLength", intOf(1))
		if n.kind != textNode {
			return none
		}
		value, err := parse(text)
		if err != nil {
			r.unreadable(n.at, at, text, err)
			return none
		}
		return value
	}
}

// canonical reads a value of a permission and returns its canonical form.
func canonical[V fmt.Stringer](r *reader, parse func(string) (V, error)) parser[string] {
	read := valueOf(r, func(text string) (string, error) {
		value, err := parse(text)
		return value.String(), err
	})
	return read
}

// unreadable reports a text that package permission rejected.
func (r *reader) unreadable(at position, path, text string, err error) {
	problem, fix := err.Error(), ""
	if invalid, ok := errors.AsType[*permission.Error](err); ok {
		problem, fix = invalid.Problem, invalid.Fix
	}
	r.add(at, path, mistake.InvalidValue, fmt.Sprintf("%q %s", clip(text), problem), fix)
}

func (r *reader) guestPath(n *node, at string) permission.GuestPath {
	if n.note("$ref", textOf("#/$defs/guestPath")) {
		return permission.GuestPath{}
	}
	return valueOf(r, permission.ParseGuestPath)(n, at)
}
