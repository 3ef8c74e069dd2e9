package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/caisson-run/caisson/manifests"
)

// Source is where manifests come from.
type Source interface {
	// Manifests returns all the manifests of the source in a stable order. If any is
	// broken it returns none of them, and an error that names every broken one.
	Manifests(ctx context.Context) ([]*manifests.Manifest, error)
	// String names the source as the operator does.
	String() string
}

// Open makes a tool of a manifest. [Registry.Load] calls it for one manifest at a time.
type Open func(ctx context.Context, manifest *manifests.Manifest) (Tool, error)

// Load registers the tools of a source in its order. Load the sources in the order of
// their precedence.
//
// All or nothing: if a manifest is broken or a tool fails to open, Load returns all
// problems and registers nothing of the source. A tool that silently went missing
// would hand its name to the next source that asks for it.
//
// A tool whose name is taken is no failure. It is not opened, and
// [Registry.Duplicates] reports it. One whose name only looks like that of another tool
// is a failure, with a [*DuplicateError] that names both: which of the two people mean
// who read the name, in a policy or where they approve of a call, the order in which they
// were loaded cannot say.
func (r *Registry) Load(ctx context.Context, source Source, open Open) error {
	if source == nil || open == nil {
		return &Error{Op: "load", Err: fmt.Errorf("%w: the source or the function that opens tools is nil", ErrSource)}
	}
	found, err := source.Manifests(ctx)
	if err != nil {
		return &Error{Op: "load", Name: source.String(), Err: err}
	}
	wanted, err := r.plan(source.String(), found)
	if err != nil {
		return &Error{Op: "load", Name: source.String(), Err: err}
	}
	entries, err := openAll(ctx, source.String(), wanted, open)
	if err != nil {
		return &Error{Op: "load", Name: source.String(), Err: err}
	}
	unused, err := r.addAll(source.String(), found, entries)
	for _, e := range unused {
		err = errors.Join(err, closeTool(context.WithoutCancel(ctx), e.tool))
	}
	if err != nil {
		return &Error{Op: "load", Name: source.String(), Err: err}
	}
	return nil
}

// plan returns the manifests that will get their names.
func (r *Registry) plan(source string, found []*manifests.Manifest) ([]*manifests.Manifest, error) {
	r.mu.RLock()
	names, closed := r.names.clone(), r.closed
	r.mu.RUnlock()
	if closed {
		return nil, ErrClosed
	}
	var wanted []*manifests.Manifest
	var problems []error
	for _, m := range found {
		if err := checkManifest(m); err != nil {
			problems = append(problems, err)
			continue
		}
		switch duplicate := names.add(&entry{manifest: m, origin: originOf(source, m)}); {
		case duplicate == nil:
			wanted = append(wanted, m)
		case duplicate.Reason == LookAlike:
			problems = append(problems, duplicate)
		}
	}
	return wanted, errors.Join(problems...)
}

// openAll opens the tools of all manifests, or none.
func openAll(ctx context.Context, source string, wanted []*manifests.Manifest, open Open) (map[*manifests.Manifest]*entry, error) {
	entries := make(map[*manifests.Manifest]*entry, len(wanted))
	var problems []error
	for _, m := range wanted {
		if err := ctx.Err(); err != nil {
			problems = append(problems, err)
			break
		}
		e, err := openOne(ctx, source, m, open)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", m.Name, err))
			continue
		}
		entries[m] = e
	}
	if len(problems) == 0 {
		return entries, nil
	}
	for _, m := range wanted {
		if e := entries[m]; e != nil {
			if err := closeTool(context.WithoutCancel(ctx), e.tool); err != nil {
				problems = append(problems, fmt.Errorf("%s: close: %w", m.Name, err))
			}
		}
	}
	return nil, errors.Join(problems...)
}

// openOne opens one tool. It registers under the manifest that was asked for, whatever
// manifest the tool itself names.
func openOne(ctx context.Context, source string, m *manifests.Manifest, open Open) (*entry, error) {
	t, err := open(ctx, m)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, fmt.Errorf("%w: it was opened as nil", ErrInvalidTool)
	}
	return &entry{tool: t, manifest: m, origin: originOf(source, m), gate: newGate(), registration: newRegistration()}, nil
}

// addAll registers what was opened, in the order of the source, and reports the rest.
// It returns the entries that it did not register.
func (r *Registry) addAll(source string, found []*manifests.Manifest, entries map[*manifests.Manifest]*entry) (unused []*entry, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range found {
		e := entries[m]
		if e == nil {
			// Its name was taken when the tools were opened. Names are never given
			// up, so it is taken now.
			r.names.add(&entry{manifest: m, origin: originOf(source, m)})
			continue
		}
		switch addErr := r.add(e); {
		case errors.Is(addErr, ErrClosed):
			err = addErr
			unused = append(unused, e)
		case addErr != nil:
			unused = append(unused, e)
		}
	}
	return unused, err
}
