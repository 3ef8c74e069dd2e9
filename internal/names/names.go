// Package names determines which manifests get their names, as in a registry that loads them, without loading any tool.
package names

import (
	"context"
	"errors"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// Names is a set of manifests with their names. Create it with [New]. It is safe for concurrent use.
type Names struct{ registry *registry.Registry }

// New returns an empty set.
func New() *Names { return &Names{registry.New()} }

// Add adds a manifest with its file as the source. It does not fail if the manifest's names are
// taken; see [Names.Duplicates].
func (n *Names) Add(m *manifests.Manifest) error {
	if err := n.registry.Register(m.File, described{m}); !errors.Is(err, registry.ErrDuplicate) {
		return err
	}
	return nil
}

// Duplicates returns the names that were already taken, like [registry.Registry.Duplicates].
func (n *Names) Duplicates() []*registry.DuplicateError { return n.registry.Duplicates() }

// Has reports whether a manifest has the name or the alias.
func (n *Names) Has(name string) bool {
	_, found := n.registry.Get(name)
	return found
}

// Nearest returns at most limit names that are similar to a name.
func (n *Names) Nearest(name string, limit int) []string { return n.registry.Nearest(name, limit) }

// described is a registry entry with a manifest only. It is never invoked.
type described struct{ manifest *manifests.Manifest }

// Manifest implements registry.Tool.
func (d described) Manifest() *manifests.Manifest { return d.manifest }

// Invoke implements registry.Tool.
func (d described) Invoke(context.Context, tool.Invocation) (tool.Outcome, error) {
	err := &tool.Error{Op: "invoke", Tool: d.manifest.Name, Kind: tool.Internal, Message: "the tool is only described"}
	return tool.Outcome{Result: tool.Result{Kind: err.Kind, Error: err.Message}}, err
}
