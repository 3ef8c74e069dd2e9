// Package caisson opens a policy and the tools that it names as one value, which runs a model's tool
// calls in sandboxes and returns a record for each:
//
//	host, err := caisson.Open(ctx, caisson.Options{PolicyFile: "caisson.yaml"})
//	report, err := host.Execute(ctx, executor.Batch{Calls: calls})
//
// It wires the packages below it and adds no rules of its own: manifests and policies are those of
// package manifests, what a tool may do is enforced by package runtime, names are package registry's,
// and what becomes of a batch, package executor says.
package caisson

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/records"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
)

// Options say what to open. The zero value opens no tools; those that are loaded without a policy get
// nothing. Negative numbers are errors.
type Options struct {
	// PolicyFile is the policy to read, such as caisson.yaml: which tools there are, and what each of
	// them gets. Empty: none is read, whatever lies in the working directory.
	PolicyFile string
	// Policies are more of them, behind that of PolicyFile, which the program has read or made, and no
	// longer changes. What any of them denies is denied. Of profiles with one name, of choices of a profile and of origins
	// of one context value, the first counts.
	Policies []*manifests.Policy
	// Tools are folders and manifests to load, before those that the policies name. The first tool of
	// a name has it.
	Tools []string
	// Profile names the profile that bounds all tools. Empty: the policies' choice, or else standard.
	Profile string
	// StateDir is the folder below which the record of each call is kept, with its arguments and its
	// whole result, for "caisson explain": this user's alone, and where no tool may write. Empty: none
	// is kept.
	StateDir string
	// NoCache keeps no compiled code: each process compiles the modules anew.
	NoCache bool
	// Runtime says how tools are loaded and bounded, and where modules are compiled. Its Profile must
	// be zero. An empty CacheDir stands for [runtime.DefaultCacheDir], unless NoCache is set, and a zero
	// Running for that of the Executor's Limits. Nothing is read from the environment, secrets neither,
	// without LookupEnv.
	Runtime runtime.Options
	// Executor says how batches are run. Its Recorder gets what StateDir has kept.
	Executor executor.Options
	// Resolver returns what calls reach the tools through, such as a registry without some of them.
	// Nil: the registry itself.
	Resolver func(tools *registry.Registry) executor.Resolver
	// Logger is that of the runtime and of the executor where they have none. Nil: nothing is logged.
	Logger *slog.Logger
}

// check refuses what contradicts itself.
func (o Options) check() error {
	switch {
	case o.Runtime.Profile != manifests.Profile{}:
		return errors.New("Runtime.Profile is set; name a profile, and define it in a policy")
	case o.NoCache && o.Runtime.CacheDir != "":
		return errors.New("NoCache and Runtime.CacheDir exclude each other")
	}
	return nil
}

// Host is tools with what is granted to them, and what runs their calls. Get one from [Open] and close
// it. It is safe for concurrent use.
type Host struct {
	policies []*manifests.Policy
	policy   *manifests.Policy // all of them as one
	runtime  *runtime.Runtime
	registry *registry.Registry
	executor *executor.Executor
	ledger   *ledger
}

// Open reads the policy and loads the tools. It reads no module, unless a grant is for a certain one,
// and runs nothing. The error is an [*Error]; what is wrong with manifests is reported together, and
// holds a [*manifests.Error] for each.
//
// Modules are compiled at their first call, where [Options.Runtime] says. Its zero Compiler is this
// process, and then modules are refused for which the compiler's time would grow faster than their
// size. With [runtime.ChildCompiler], the first call of main, a child process compiles them within
// bounds on time and memory, and may take a minute for one. Whoever wants no bounds for a module names
// its digest in TrustedModules.
func Open(ctx context.Context, options Options) (_ *Host, err error) {
	if err := options.check(); err != nil {
		return nil, &Error{"open", ErrInvalidOptions, err}
	}
	h := &Host{registry: registry.New()}
	if h.policies, err = options.policies(); err != nil {
		return nil, &Error{"open", ErrPolicy, err}
	}
	h.policy = asOne(h.policies)
	if h.runtime, err = options.newRuntime(ctx, h.policy); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = h.Close(context.WithoutCancel(ctx)) // what made the opening fail matters more
		}
	}()
	if err := h.load(ctx, slices.Concat(options.Tools, h.policy.Tools)); err != nil {
		return nil, &Error{"open", ErrTools, err}
	}
	if err := h.start(options); err != nil {
		return nil, &Error{"open", ErrInvalidOptions, err}
	}
	return h, nil
}

// policies returns that of the file, and those of the program.
func (o Options) policies() ([]*manifests.Policy, error) {
	var all []*manifests.Policy
	if o.PolicyFile != "" {
		read, err := manifests.LoadPolicy(o.PolicyFile)
		if err != nil {
			return nil, err
		}
		all = append(all, read)
	}
	for _, p := range o.Policies {
		if p != nil { // which says nothing
			all = append(all, p)
		}
	}
	return all, nil
}

// newRuntime starts what tools run in.
func (o Options) newRuntime(ctx context.Context, policy *manifests.Policy) (*runtime.Runtime, error) {
	profile, err := policy.ProfileNamed(o.Profile)
	if err != nil {
		return nil, &Error{"open", ErrPolicy, err}
	}
	r := o.Runtime
	r.Profile = profile
	if r.Running == 0 { // whoever the executor's queue lets in is not refused
		r.Running = max(0, o.Executor.Limits.Running)
	}
	if r.Logger == nil {
		r.Logger = o.Logger
	}
	if r.CacheDir == "" && !o.NoCache {
		if r.CacheDir, err = runtime.DefaultCacheDir(); err != nil {
			return nil, &Error{"open", ErrRuntime, err}
		}
	}
	started, err := runtime.New(ctx, r)
	if err != nil {
		return nil, &Error{"open", ErrRuntime, err}
	}
	return started, nil
}

// load loads the tools of all sources, and reports what is wrong with any of them.
func (h *Host) load(ctx context.Context, sources []string) error {
	var problems []error
	for _, source := range sources {
		err := h.registry.Load(ctx, registry.Directory(source), func(ctx context.Context, m *manifests.Manifest) (registry.Tool, error) {
			return h.runtime.Load(ctx, m, h.policy.For(m.Name, m.File))
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// start makes what runs batches.
func (h *Host) start(options Options) (err error) {
	h.ledger = &ledger{tools: h.registry, next: options.Executor.Recorder}
	if options.StateDir != "" {
		h.ledger.folder = records.In(options.StateDir)
	}
	e := options.Executor
	if e.Logger == nil {
		e.Logger = options.Logger
	}
	if h.ledger.folder != "" {
		e.Recorder = h.ledger
	}
	var resolver executor.Resolver = h.registry
	if options.Resolver != nil {
		resolver = options.Resolver(h.registry)
	}
	h.executor, err = executor.New(resolver, e)
	return err
}

// Close waits for the calls under way and ends the host: calls that come later fail. Once ctx has
// ended, tools are closed without waiting for their calls, and the error says so; the runtime is waited
// for all the same, unless nothing but guests that cannot be stopped are left ([runtime.ErrRunaway]).
// It can be called again.
func (h *Host) Close(ctx context.Context) error {
	return errors.Join(h.registry.Close(ctx), h.runtime.Close(ctx), h.CloseRecords())
}
