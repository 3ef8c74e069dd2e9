package caisson

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// Registry returns what holds the tools, for looking them up, and for adding tools that the program
// has itself. The host closes it.
func (h *Host) Registry() *registry.Registry { return h.registry }

// Definitions returns the tools as they are offered to a model; see [registry.Registry.Definitions].
func (h *Host) Definitions() []tool.Definition { return h.registry.Definitions() }

// NewSession returns a session for batches of this host. Context values that a policy fixes are filled
// in; who may set the others, the program sees to. It fails with [ErrContext] where another value is set
// for one that is fixed, with [ErrExposed] where calls of the session could write to the records that
// are kept, and as [executor.Executor.NewSession] does.
func (h *Host) NewSession(options executor.SessionOptions) (*executor.Session, error) {
	values, err := h.contextOf(options.Context)
	if err != nil {
		return nil, &Error{"session", ErrContext, err}
	}
	options.Context = values
	if err := h.keepsApart(values); err != nil {
		return nil, &Error{"session", ErrExposed, err}
	}
	h.ledger.open()
	return h.executor.NewSession(options)
}

// contextOf returns context values with those that policies fix. Names that differ by case alone would
// pass for each other in many JSON decoders.
func (h *Host) contextOf(given map[string]string) (map[string]string, error) {
	values := maps.Clone(given)
	if values == nil {
		values = map[string]string{}
	}
	seen := map[string]bool{}
	for _, source := range h.policy.Context {
		name := strings.ToLower(source.Name)
		if seen[name] {
			continue
		}
		seen[name] = true
		if source.From != manifests.Fixed {
			continue
		}
		for other, value := range given {
			if strings.EqualFold(other, source.Name) && (other != source.Name || value != source.Value) {
				return nil, fmt.Errorf("%s: %s fixes %s", other, source.Origin, source.Name)
			}
		}
		values[source.Name] = source.Value
	}
	return values, nil
}

// Execute runs a batch; see [executor.Executor.Execute]. Where it has no session, it gets one that
// [Host.NewSession] makes of the zero options.
func (h *Host) Execute(ctx context.Context, batch executor.Batch) (executor.Report, error) {
	session, err := h.sessionOf(batch.Session)
	if err != nil {
		return executor.Report{}, err
	}
	batch.Session = session
	return h.executor.Execute(ctx, batch)
}

// Resume resumes a batch that required action; see [executor.Executor.Resume]. Where it has no
// session, it gets one as [Host.Execute] makes it.
func (h *Host) Resume(ctx context.Context, resumption executor.Resumption) (executor.Report, error) {
	session, err := h.sessionOf(resumption.Session)
	if err != nil {
		return executor.Report{}, err
	}
	resumption.Session = session
	return h.executor.Resume(ctx, resumption)
}

func (h *Host) sessionOf(given *executor.Session) (*executor.Session, error) {
	if given != nil {
		return given, nil
	}
	return h.NewSession(executor.SessionOptions{})
}
