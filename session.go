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

// Registry returns the registry that holds the tools. Use it to look up tools and to add the
// program's own. The host closes it.
func (h *Host) Registry() *registry.Registry { return h.registry }

// Catalogue returns the content of a settings page: each tool with its label and description for people,
// whether an agent may call it, whether it is available and why not, and the permissions that it requests and gets.
// allowed names the agent's tools; nil allows all. The definitions for the agent's model are the
// catalogue's; see [registry.Catalogue.Definitions].
func (h *Host) Catalogue(allowed []string) registry.Catalogue { return h.registry.Catalogue(allowed) }

// Definitions returns the tools as offered to a model; see [registry.Registry.Definitions].
func (h *Host) Definitions() []tool.Definition { return h.registry.Definitions() }

// NewSession returns a session for batches of this host. It fills in context values that a policy
// fixes. The program must control who may set other values. NewSession fails with [ErrContext] if
// options.Context sets one of those differently, with [ErrExposed] if calls of the session could
// write to the folder of records or to the cache, and as [executor.Executor.NewSession] does.
func (h *Host) NewSession(options executor.SessionOptions) (*executor.Session, error) {
	values, err := h.contextOf(options.Context)
	if err != nil {
		return nil, &Error{"session", ErrContext, err}
	}
	options.Context = values
	if err := h.checkKept(values); err != nil {
		return nil, &Error{"session", ErrExposed, err}
	}
	return h.executor.NewSession(options)
}

// contextOf returns the given context values together with those fixed by policies. It compares
// names without regard to case, because many JSON decoders do.
func (h *Host) contextOf(given map[string]string) (map[string]string, error) {
	values := map[string]string{}
	maps.Copy(values, given)
	seen := map[string]bool{}
	for _, source := range h.policy.Context {
		name := strings.ToLower(source.Name)
		if seen[name] {
			continue
		}
		seen[name] = true
		if source.From != manifests.FromFixed {
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

// Load returns how many calls run now and how many wait; see [executor.Executor.Load].
func (h *Host) Load() (running, waiting int) { return h.executor.Load() }

// Call runs one call of a tool and returns its record. The arguments are a JSON object. The call has a
// separate session with zero options; to choose the session, or to answer a waiting call, use
// [Host.Execute]. Call fails with [ErrPaused] if the call needs an approval or its tool runs on the
// client, and otherwise as Execute does. A failure of the tool is in the record.
func (h *Host) Call(ctx context.Context, name, arguments string) (tool.Record, error) {
	call := tool.Call{ID: "call", Type: tool.FunctionCall, Function: tool.Function{Name: name, Arguments: arguments}}
	report, err := h.Execute(ctx, executor.Batch{Calls: []tool.Call{call}})
	if err != nil {
		return tool.Record{}, err
	}
	if report.Status == executor.RequiresAction {
		return tool.Record{}, &Error{"call", ErrPaused, fmt.Errorf("%s waits for its %s", name, report.Pending[0].Type)}
	}
	return report.Records[0], nil
}

// Subscribe returns a subscription to the events of all batches from now on; see
// [executor.Executor.Subscribe].
func (h *Host) Subscribe(options executor.SubscribeOptions) (*executor.Subscription, error) {
	return h.executor.Subscribe(options)
}

// Execute runs a batch; see [executor.Executor.Execute]. A batch without a session gets one from
// [Host.NewSession] with zero options.
func (h *Host) Execute(ctx context.Context, batch executor.Batch) (executor.Report, error) {
	if err := h.begin(ctx, &batch.Session); err != nil {
		return executor.Report{}, err
	}
	return h.executor.Execute(ctx, batch)
}

// Resume resumes a batch that required action; see [executor.Executor.Resume]. A resumption without
// a session gets one as in [Host.Execute].
func (h *Host) Resume(ctx context.Context, resumption executor.Resumption) (executor.Report, error) {
	if err := h.begin(ctx, &resumption.Session); err != nil {
		return executor.Report{}, err
	}
	return h.executor.Resume(ctx, resumption)
}

// begin creates a session if there is none, and opens the ledger. That it cannot be opened does not affect calls.
func (h *Host) begin(ctx context.Context, session **executor.Session) (err error) {
	_, _ = h.recorder.open(ctx)
	if *session == nil {
		*session, err = h.NewSession(executor.SessionOptions{})
	}
	return err
}
