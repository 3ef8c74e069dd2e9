package registry

import "errors"

// Clone returns a registry with the same tools and reports. The two are independent
// from then on, except that the clone's tools end when the registry that owns them is
// closed: it waits for the clone's calls too, and later ones fail with [ErrClosed].
// The clone owns none of them. A clone of a closed registry is open and its tools are
// closed.
func (r *Registry) Clone() *Registry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return &Registry{names: r.names.clone(), owned: map[*entry]bool{}, done: make(chan struct{})}
}

// With returns a clone to which tools were added; the original is untouched. The clone
// owns the added tools. If any of them cannot be registered it returns all the errors,
// and the caller still owns every one of the tools.
func (r *Registry) With(tools ...Tool) (*Registry, error) {
	derived := r.Clone()
	var problems []error
	for _, t := range tools {
		if err := derived.Register("", t); err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return derived, nil
}

// Without returns a clone without the named tools and their aliases; the original is
// untouched. An alias removes only itself, and a name that nobody holds nothing. A
// name that a removed tool kept out is not promoted: add it with [Registry.With].
func (r *Registry) Without(names ...string) *Registry {
	derived := r.Clone()
	for _, name := range names {
		derived.names.remove(name)
	}
	return derived
}
