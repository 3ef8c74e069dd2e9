package manifests

import (
	"errors"
	"fmt"

	"github.com/caisson-run/caisson/manifests/permission"
)

// canonical reads a value of a permission and returns its one spelling.
func canonical[V fmt.Stringer](r *reader, n *node, at string, parse func(string) (V, error)) string {
	text := r.text(n, at)
	if n.kind != textNode {
		return ""
	}
	value, err := parse(text)
	if err != nil {
		r.unreadable(n.at, at, text, err)
		return ""
	}
	return value.String()
}

// unreadable reports a text that package permission refused.
func (r *reader) unreadable(at position, path, text string, err error) {
	problem, fix := wrong(err)
	r.add(at, path, InvalidValue, fmt.Sprintf("%q %s", clip(text), problem), fix)
}

// wrong returns what package permission says of a text, to stand behind it, and what to write.
func wrong(err error) (problem, fix string) {
	if invalid, ok := errors.AsType[*permission.Error](err); ok {
		return invalid.Problem, invalid.Fix
	}
	return err.Error(), ""
}

func (r *reader) guestPath(n *node, at string) string {
	return canonical(r, n, at, permission.ParseGuestPath)
}
