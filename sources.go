package caisson

import (
	"context"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime/extism"
)

// sourceOf returns the source that a path names: the manifests in a folder, one manifest, or a
// manifest of Extism, which makes a tool of each function of its plug-in.
func sourceOf(path string, load func(path string) (*manifests.Manifest, error)) registry.Source {
	if extism.IsManifest(path) {
		return pluginSource(path)
	}
	return registry.Directory(path, load)
}

// pluginSource is the path of a manifest of Extism.
type pluginSource string

func (p pluginSource) String() string { return string(p) }

// Manifests implements [registry.Source].
func (p pluginSource) Manifests(ctx context.Context) ([]registry.Found, error) {
	translated, err := extism.Load(string(p))
	if err != nil {
		return nil, err
	}
	var found []registry.Found
	for _, m := range translated.Manifests {
		found = append(found, registry.Found{Manifest: m})
	}
	return found, ctx.Err()
}
