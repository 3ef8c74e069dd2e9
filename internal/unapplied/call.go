package unapplied

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/manifests"
)

// shownAsked is the maximum number of names of requested tools that a text lists.
const shownAsked = 5

// uncalled says why granting or denying some tools the call of a name has no effect. It checks for the likeliest
// mistake first. subject is the subject of the text, such as "none of its tools".
func (a *applied) uncalled(subject, name string, callers []*manifests.Manifest) (text, fix string) {
	called := a.tool(name)
	if called == nil {
		return fmt.Sprintf("there is no tool %q here to call", name), a.fixFor(name)
	}
	asked := askedBy(callers)
	// A permission applies to one name, not to the tool's other names.
	for _, other := range asked {
		if a.tool(other) != called {
			continue
		}
		relation := fmt.Sprintf("it is an alias of %s", called.Name)
		if name == called.Name {
			relation = fmt.Sprintf("it has the alias %s", other)
		}
		return fmt.Sprintf("%s asks to call %s: %s, and the manifest asks for %s", subject, name, relation, other),
			"write " + other
	}
	text = fmt.Sprintf("%s asks to call %s", subject, name)
	if more := len(asked) - shownAsked; more > 0 {
		asked = append(asked[:shownAsked], fmt.Sprintf("and %d more", more))
	}
	if len(asked) > 0 {
		text += fmt.Sprintf(" (they ask for: %s)", strings.Join(asked, ", "))
	}
	return text, "write a name that a manifest has under permissions.tools, or remove it"
}

func (a *applied) tool(name string) *manifests.Manifest {
	at := slices.IndexFunc(a.tools, func(m *manifests.Manifest) bool { return m.Name == name })
	if at < 0 {
		at = slices.IndexFunc(a.tools, func(m *manifests.Manifest) bool { return slices.Contains(m.Aliases, name) })
	}
	if at < 0 {
		return nil
	}
	return a.tools[at]
}

func askedBy(callers []*manifests.Manifest) []string {
	var names []string
	for _, m := range callers {
		for _, name := range m.Permissions.Tools {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
