package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/check"
	"github.com/caisson-run/caisson/internal/interpreter"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/internal/view"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// host is the loaded tools and the executor of their calls. Close it.
type host struct {
	*caisson.Host
	options      *options
	operator     *operator
	sources      []string
	registry     *registry.Registry
	logger       *slog.Logger // nil without --verbose
	runaways     *runaways
	session      *executor.Session // nil before [host.start]
	observer     *callObserver     // nil if no calls are run
	stateProblem error             // the reason for a missing folder of records
}

// lacksInterpreter reports whether a tool is a script whose interpreter is not installed.
func (h *host) lacksInterpreter(m *manifests.Manifest) bool {
	i, found := interpreter.For(string(m.Module.Language))
	if !found {
		return false
	}
	folder, err := h.options.interpreterFolder()
	return err != nil || !folder.Has(i)
}

// withCallees returns the tools with these names, and those that they request to call, also indirectly.
func (h *host) withCallees(names []string) []registry.Entry {
	var all []registry.Entry
	found := map[string]bool{}
	for next := slices.Clone(names); len(next) > 0; next = next[1:] {
		entry, known := h.registry.Get(next[0])
		if !known || found[entry.Name] {
			continue
		}
		found[entry.Name] = true
		all = append(all, entry)
		next = append(next, entry.Manifest.Permissions.Tools...)
	}
	return all
}

// problems returns the problems that kept tools from being loaded: the first of each broken manifest, and its
// consequences.
func (h *host) problems() []manifests.Problem {
	var all []manifests.Problem
	for _, problem := range h.Problems() {
		all = append(all, check.Unloaded(problem)...)
	}
	return all
}

// serverLog returns the log of a command that serves. Without --verbose, it logs only the given level and above.
func (h *host) serverLog(level slog.Level) *slog.Logger {
	if h.logger != nil {
		return h.logger
	}
	return slog.New(slog.NewTextHandler(h.options.stderr, &slog.HandlerOptions{Level: level}))
}

// close closes the host, and prints a hint if a record was not kept. It waits for calls even if ctx
// is done, except for one that cannot be stopped: the process is about to end then.
func (h *host) close(ctx context.Context) error {
	problem := h.CloseRecords()
	if h.session != nil { // a command that serves has logged the problem
		problem = cmp.Or(h.stateProblem, problem)
	}
	if problem != nil {
		const fix = `; choose another folder with --state-dir DIR, or none with --state-dir ""`
		h.options.hint(`a call was not kept for "caisson explain": ` + problem.Error() + fix)
	}
	if h.runaways.any() {
		return nil
	}
	return h.Close(context.WithoutCancel(ctx))
}

// keepsFromTools fails if a tool may write to a path where data is kept. harm names the damage that the tool could do.
func (h *host) keepsFromTools(path, kept, harm string) error {
	writer, found, err := h.WriterTo(path, h.operator.context)
	if err == nil && found {
		err = failed(exitUsage, fmt.Sprintf("%s kept in %s, and %s may write there (to %s): %s", kept, path, writer.Tool,
			writer.Dir, harm), apartHint)
	}
	return err
}

// whereTools says what to do if a tool was not found.
func (h *host) whereTools() string {
	if len(h.registry.List()) == 0 {
		return "there is no tool in " + strings.Join(h.sources, ", ") + "; " +
			cmp.Or(h.pluginsHint(), "name a folder that has a tool.yaml or NAME.tool.yaml with --tools DIR")
	}
	return terminal.ToRun(h.options.repeatFlags("caisson list", sourceFlagNames...)) + " to see the tools"
}

// pluginsHint says how to name a manifest of Extism that is in one of the sources, or "".
func (h *host) pluginsHint() string {
	for _, source := range h.sources {
		if hint := check.ExtismHint("--tools ", source); hint != "" {
			return hint
		}
	}
	return ""
}

// inspectCommand returns the command that inspects a tool, with the given flags of this one.
func (h *host) inspectCommand(name string, flags []string) string {
	return h.options.repeatFlags("caisson inspect "+terminal.Quote(name), flags...)
}

// readOn says where to find the rest of a truncated result. Its reference begins with the call's id.
func (h *host) readOn(cut tool.Cut) string {
	if !h.Keeps() {
		return "raise the limit with --max-output SIZE"
	}
	id, _, _ := strings.Cut(cut.Reference, ".")
	return "read on with " + view.OutputCommand(id, cut.Part, cut.Kept, h.options.stateDir)
}
