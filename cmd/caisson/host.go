package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/check"
	"github.com/caisson-run/caisson/internal/interpreter"
	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/internal/view"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
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
	keeps        bool              // whether records of calls are kept
	stored       *agents.Store     // nil before [host.agents]
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

// problems returns what kept tools from being loaded: of broken manifests the first, and what follows.
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
	if h.stored != nil {
		_ = h.stored.Close() // what was saved is durable
	}
	problem := h.CloseRecords(context.WithoutCancel(ctx))
	if h.session != nil { // a command that serves has logged the problem
		problem = cmp.Or(h.stateProblem, problem)
	}
	if problem != nil {
		fix := `; choose another folder with --state-dir DIR, or none with --state-dir ""`
		if h.options.ledgerURL != "" {
			fix = "; look after the database of --ledger"
		}
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

// keepsStoreFromTools fails if a tool may write to where agents or tokens are stored, or where files of an earlier
// version would be imported from.
func (h *host) keepsStoreFromTools(kind ledger.Kind, harm string) error {
	state, url, err := h.options.storedIn(kind)
	if err != nil || state == "" {
		return err
	}
	paths := []string{filepath.Join(state, string(kind))}
	if url == "" {
		paths = append(paths, ledger.In(state))
	}
	for _, path := range paths {
		if err := h.keepsFromTools(path, string(kind)+" are", harm); err != nil {
			return err
		}
	}
	return nil
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
	if !h.keeps {
		return "raise the limit with --max-output SIZE"
	}
	id, _, _ := strings.Cut(cut.Reference, ".")
	return "read on with " + view.OutputCommand(id, cut.Part, cut.Kept, h.options.stateDir)
}

// openMode says why tools are opened.
type openMode struct {
	starts   bool              // whether programs are compiled and started
	fills    bool              // whether compiled code is only stored for later, so that tools are granted nothing
	runs     bool              // whether calls are run as well
	serves   bool              // whether the calls of clients are run, until they have disconnected
	shared   bool              // whether several clients must be protected from each other
	recorder executor.Recorder // records the calls of clients; may be nil
	called   []string          // the tools of the calls, if they are known
	claims   executor.Claimer  // ensures that a batch is resumed only once; may be nil
}

func (o *options) open(ctx context.Context, mode openMode) (_ *host, err error) {
	if o.quiet && o.verbose {
		return nil, failed(exitUsage, "--quiet and --verbose cannot be used together")
	}
	indexDir, _ := o.cacheFolder()
	cacheDir := "" // for none, or for the default unless code must be stored
	switch {
	case o.cacheDir != nil && (mode.starts || mode.runs || mode.serves):
		cacheDir = *o.cacheDir
	case mode.fills:
		cacheDir = o.compiledIn()
	}
	operator, err := o.operator()
	if err != nil {
		return nil, err
	}
	if mode.runs || mode.serves {
		if err := operator.checkRecording(); err != nil {
			return nil, err
		}
	}
	if p := operator.policy; mode.fills {
		operator.policy = &manifests.Policy{File: p.File, Tools: p.Tools, Profile: p.Profile, Profiles: p.Profiles}
	}
	sources, err := operator.sources()
	if err != nil {
		return nil, err
	}
	h := &host{options: o, operator: operator, sources: sources, runaways: newRunaways(o.environment, o.quiet)}
	if o.verbose {
		h.logger = slog.New(slog.NewTextHandler(o.stderr, nil))
	}
	options := h.openOptions(cacheDir)
	options.NoCache = cacheDir == "" && (o.cacheDir != nil || !mode.starts && !mode.runs && !mode.serves)
	options.Runtime.FillCache, options.IndexDir = mode.fills, indexDir
	switch {
	case mode.runs:
		err = h.runOptions(mode.claims, &options)
	case mode.serves:
		err = h.serveOptions(mode, &options)
	}
	if err != nil {
		return nil, err
	}
	options.Called = mode.called
	if h.Host, err = caisson.Open(ctx, options); err != nil {
		return nil, notOpened(ctx, err, cacheDir, mode)
	}
	h.registry = h.Registry()
	if err := cmp.Or(h.hostsOfTools(), h.keepsKeysFromTools()); err != nil {
		_ = h.Close(ctx) // nothing has run
		return nil, err
	}
	for _, p := range h.problems() {
		h.options.hint(view.Place(p) + p.Message + "; " + p.Fix)
	}
	h.logUnapplied(ctx)
	return h, nil
}

func (h *host) openOptions(cacheDir string) caisson.Options {
	o, policy := h.options, *h.operator.policy
	policy.Tools = nil // they are among the sources, unless only one tool is inspected
	return caisson.Options{
		Policies: []*manifests.Policy{&policy, h.operator.flags}, Tools: h.sources, Profile: o.profile,
		Logger: h.logger,
		Runtime: runtime.Options{
			CacheDir: cacheDir, OnUncached: o.uncached, Interpreters: string(o.interpreters), Compiler: o.compiler,
			TrustedModules: o.trusted, Limits: o.limits, LookupEnv: os.LookupEnv,
			OnRunaway: h.runaways.add, LastResort: h.runaways.lastResort(),
		},
	}
}

// runOptions adds the options for running calls and observing them.
func (h *host) runOptions(claims executor.Claimer, options *caisson.Options) (err error) {
	h.observer = &callObserver{parents: map[string]string{}, profiles: map[string]string{}, causes: map[string]error{},
		progress: h.options.newProgress(), logger: h.logger}
	if options.Executor, err = h.options.executorOptions(h.readOn); err != nil {
		return err
	}
	options.Executor.Recorder, options.Executor.Pause.Claim = h.observer, claims
	options.StateDir, h.stateProblem = h.options.stateFolder()
	h.keeps = options.StateDir != "" || h.options.ledgerURL != ""
	options.Records = h.options.keeping()
	options.Resolver = func(tools *registry.Registry) executor.Resolver {
		h.observer.Registry = tools
		return h.observer
	}
	return nil
}

// serveOptions adds the options for running the calls of clients. After a call has ended, only its record is kept.
func (h *host) serveOptions(mode openMode, options *caisson.Options) (err error) {
	options.Executor, err = h.options.executorOptions(nil)
	if mode.shared {
		options.Executor.Limits, options.Executor.Rates = executor.Limits{}, executor.Rates{}
		options.Executor.Breaker = executor.Breaker{}
	}
	options.Executor.Recorder = mode.recorder
	options.StateDir, h.stateProblem = h.options.stateFolder()
	h.keeps = options.StateDir != "" || h.options.ledgerURL != ""
	options.Records = h.options.keeping()
	options.Logger = h.serverLog(slog.LevelError)
	if h.stateProblem != nil {
		options.Logger.Error("records of calls are not kept", "err", h.stateProblem)
	}
	return err
}

// hostsOfTools rejects an --allow-net with the name of a tool. The flag takes a host, but --allow-call, which
// takes a tool, suggests otherwise. A host of that name can be given with its scheme.
func (h *host) hostsOfTools() error {
	for _, network := range h.options.networks {
		name := network.Host
		if _, found := h.registry.Get(name); found && network.Origin == "--allow-net "+name {
			return failed(exitUsage, fmt.Sprintf("--allow-net %s: %s is a tool, not a host", name, name),
				"name the host that its requests go to, such as api.example.com; tools that request it may reach it",
				fmt.Sprintf("if there is a host of this name, write --allow-net https://%s", name))
		}
	}
	return nil
}

func notOpened(ctx context.Context, err error, cacheDir string, mode openMode) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	known, ok := errors.AsType[*caisson.Error](err)
	if !ok {
		return err
	}
	switch err := known.Err; {
	case known.Kind != caisson.ErrRuntime:
		return &failure{exitUsage, messagesOf(err)}
	case mode.fills:
		return failed(exitUsage, "nothing can be stored: "+causeOf(err).Error(), "name another folder with --cache-dir DIR")
	case cacheDir != "":
		return failed(exitUsage, causeOf(err).Error(),
			`name another folder with --cache-dir DIR, or disable the cache with --cache-dir ""`)
	default:
		return err
	}
}

// causeOf returns the cause of an error of the runtime, whose operation says nothing to users, or err itself.
func causeOf(err error) error {
	if failure, ok := err.(*runtime.Error); ok {
		return failure.Err
	}
	return err
}
