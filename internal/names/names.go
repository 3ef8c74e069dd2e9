// Package names says which of some manifests get their names, as a registry would that loaded them. No
// tool stands behind any of them.
package names

import (
	"context"
	"errors"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// Names are those of manifests. Get one from [New]; it is safe for concurrent use.
type Names struct{ registry *registry.Registry }

// New returns the names of nothing.
func New() *Names { return &Names{registry.New()} }

// Add adds a manifest, whose file is its source. That its names are taken is no error: see
// [Names.Duplicates].
func (n *Names) Add(m *manifests.Manifest) error {
	if err := n.registry.Register(m.File, described{m}); !errors.Is(err, registry.ErrDuplicate) {
		return err
	}
	return nil
}

// Duplicates returns the names that were kept out, as the registry does.
func (n *Names) Duplicates() []*registry.DuplicateError { return n.registry.Duplicates() }

// Nearest returns at most so many names that a name may have been meant for.
func (n *Names) Nearest(name string, most int) []string { return n.registry.Nearest(name, most) }

// described is a manifest in a registry. It is never run.
type described struct{ manifest *manifests.Manifest }

// Manifest implements registry.Tool.
func (d described) Manifest() *manifests.Manifest { return d.manifest }

// Invoke implements registry.Tool.
func (d described) Invoke(context.Context, tool.Invocation) (tool.Outcome, error) {
	err := &tool.Error{Op: "invoke", Tool: d.manifest.Name, Kind: tool.Internal, Message: "the tool is only described"}
	return tool.Outcome{Result: tool.Result{Kind: err.Kind, Error: err.Message}}, err
}
