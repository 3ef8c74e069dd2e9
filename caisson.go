// Package caisson opens a policy and the tools it names. The resulting [Host] runs a model's tool
// calls in sandboxes and returns a record for each:
//
//	host, err := caisson.Open(ctx, caisson.Options{PolicyFile: "caisson.yaml"})
//	report, err := host.Execute(ctx, executor.Batch{Calls: calls})
//
// Package caisson only wires other packages together and adds no rules. Package manifests defines
// manifests and policies, package runtime enforces permissions, package registry resolves names,
// and package executor runs batches.
package caisson

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/interpreter"
	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
)

// Options configures [Open]. The zero value opens no tools, and tools loaded without a policy are
// granted nothing. Negative numbers are errors.
type Options struct {
	// PolicyFile is the policy to read, such as caisson.yaml. It names the tools and what each is
	// granted. If empty, no policy is read, even if the working directory contains one.
	PolicyFile string
	// Policies are additional policies, applied after PolicyFile. The program must not change them
	// afterwards. A denial in any policy applies. If several policies define the same profile,
	// choose a profile or set the origin of the same context value, the first wins.
	Policies []*manifests.Policy
	// Tools are folders, manifests, and manifests of Extism to load, before those named by the policies. If several
	// tools have the same name, the first keeps it.
	Tools []string
	// Profile names the profile that limits all tools. If empty, the policies choose it; the
	// default is standard.
	Profile string
	// StateDir is the folder under which the record of each call is kept for "caisson explain",
	// with its arguments and its full result. It is readable only by this user, and no tool may
	// write to it. If empty, no records are kept.
	StateDir string
	// Records configures how records are kept, and where, if not in StateDir.
	Records Records
	// NoCache disables the cache of compiled code: each process compiles the modules again.
	NoCache bool
	// IndexDir is a folder in which Open remembers the manifests that it has checked, so that the next
	// process opens hundreds of tools in a tenth of the time. Each manifest is still read, and parsed
	// before its first call. Only this user and root may own the folder or be able to write to it; it may be the
	// CacheDir. If it is empty or cannot be used, all manifests are parsed.
	IndexDir string
	// Called names tools that will be called. Open parses their manifests, and those of the tools that they request to
	// call, even if IndexDir has them. If it is wrong about one, Open parses all manifests.
	Called []string
	// Runtime configures how tools are loaded and limited, and where modules are compiled. Its
	// Profile must be zero. If CacheDir is empty, [runtime.DefaultCacheDir] is used unless NoCache is
	// set. If Interpreters is empty, it is the folder in the user's cache folder. If there is no such folder
	// for compiled code or it cannot be used, each process compiles the modules again,
	// and the Logger and Runtime.OnUncached are told why. If Running is zero, the executor's
	// Limits.Running is used. Unless LookupEnv is set, nothing is read from the environment,
	// including secrets.
	Runtime runtime.Options
	// Executor configures how batches are run. If its Ledger is nil, calls are kept in StateDir. If its Pause.Claim is
	// nil, states are claimed where records are kept, so that of all processes that keep records there, one resumes a
	// state.
	Executor executor.Options
	// Resolver returns the resolver through which calls reach the tools, such as a registry without
	// some of them. If nil, the registry itself is used.
	Resolver func(tools *registry.Registry) executor.Resolver
	// Logger is used by the runtime and the executor unless they have their own. If nil, nothing is
	// logged.
	Logger *slog.Logger
}

// check rejects contradictory options.
func (o Options) check() error {
	switch {
	case o.Runtime.Profile != manifests.Profile{}:
		return errors.New("Runtime.Profile must be zero; set Profile to the name of a profile, and define it in a policy")
	case o.NoCache && o.Runtime.CacheDir != "":
		return errors.New("NoCache and Runtime.CacheDir cannot be used together")
	}
	return nil
}

// Host is a set of tools with their grants, and the executor that runs their calls. Get one from
// [Open], and close it after use. It is safe for concurrent use.
type Host struct {
	policies []*manifests.Policy
	policy   *manifests.Policy // all policies merged
	profile  manifests.Profile
	runtime  *runtime.Runtime
	registry *registry.Registry
	executor *executor.Executor
	recorder *recorder
	problems []error
	kept     []string // folders of compiled code and of the index, to which no tool may write
	checked  checkedDirs
}

// Open reads the policy and loads the tools. It runs nothing, and reads a module only if a grant is
// restricted to a module digest. The error is an [*Error].
//
// A broken manifest keeps out only its own tool, and still holds the names that it claims. If its
// name cannot be read, its source and all later ones are not loaded. [Host.Problems] reports this;
// Open fails only if no tool is left or if a source cannot be read. A tool whose name looks like that of
// an earlier one is not loaded either, and is reported in the same way.
//
// Modules are compiled at their first call, as [Options.Runtime] configures. With the zero Compiler
// they are compiled in this process, and modules are rejected if compiling them would take time
// that grows faster than their size. With [runtime.ChildCompiler], which must be the first call in
// main, a child process compiles them within limits on time and memory, which may take a minute for
// one module. To compile a module without limits, list its digest in TrustedModules.
func Open(ctx context.Context, options Options) (_ *Host, err error) {
	if err := options.check(); err != nil {
		return nil, &Error{"open", ErrInvalidOptions, err}
	}
	h := &Host{registry: registry.New()}
	if h.policies, err = options.policies(); err != nil {
		return nil, &Error{"open", ErrPolicy, err}
	}
	h.policy = asOne(h.policies)
	if h.profile, err = h.policy.ProfileNamed(options.Profile); err != nil {
		return nil, &Error{"open", ErrPolicy, err}
	}
	if err := h.startRuntime(ctx, options); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = h.Close(context.WithoutCancel(ctx)) // the first error matters more
		}
	}()
	i := options.openIndex(ctx)
	if err := h.load(ctx, slices.Concat(options.Tools, h.policy.Tools), i.manifests.Load); err != nil {
		return nil, &Error{"open", ErrTools, err}
	}
	i.keep(ctx)
	if h.confirm(options.Called) != nil {
		if err := h.Close(ctx); err != nil { // nothing has run
			return nil, &Error{"open", ErrRuntime, err}
		}
		options.IndexDir = ""
		return Open(ctx, options)
	}
	if err := h.start(options); err != nil {
		return nil, &Error{"open", ErrInvalidOptions, err}
	}
	if options.Logger != nil {
		for _, problem := range h.problems {
			options.Logger.ErrorContext(ctx, "not loaded", "err", problem)
		}
	}
	return h, nil
}

// ledger returns the options of the ledger.
func (o Options) ledger() ledger.Options {
	return ledger.Options{
		Location: o.Records.Database, KeepFor: o.Records.KeepFor, KeepCalls: o.Records.KeepCalls,
		KeepBytes: o.Records.KeepBytes, NoWords: o.Records.NoWords, Relaxed: o.Records.Relaxed, Logger: o.Logger,
		Key: o.Records.CheckpointKey, RunKeys: o.Records.RunKeys,
	}
}

// policies returns the policy from the file, followed by those from the program.
func (o Options) policies() ([]*manifests.Policy, error) {
	given := slices.DeleteFunc(slices.Clone(o.Policies), func(p *manifests.Policy) bool { return p == nil })
	if o.PolicyFile == "" {
		return given, nil
	}
	read, err := manifests.LoadPolicy(o.PolicyFile)
	return slices.Insert(given, 0, read), err
}

// asOne merges policies into one.
func asOne(policies []*manifests.Policy) *manifests.Policy {
	all := &manifests.Policy{}
	for _, p := range policies {
		all.File = cmp.Or(all.File, p.File)
		all.Profile = cmp.Or(all.Profile, p.Profile)
		all.Tools = append(all.Tools, p.Tools...)
		all.Profiles = append(all.Profiles, p.Profiles...)
		all.Context = append(all.Context, p.Context...)
		all.Grants = append(all.Grants, p.Grants...)
		all.Deny = append(all.Deny, p.Deny...)
		all.Ask = append(all.Ask, p.Ask...)
		all.Approve = append(all.Approve, p.Approve...)
		all.Redact = append(all.Redact, p.Redact...)
		all.RecordInputs = append(all.RecordInputs, p.RecordInputs...)
	}
	return all
}

// startRuntime starts the runtime.
func (h *Host) startRuntime(ctx context.Context, o Options) (err error) {
	r := o.Runtime
	r.Profile = h.profile
	if r.Profiles == nil {
		r.Profiles = append(manifests.BuiltinProfiles(), h.policy.Profiles...)
	}
	r.Running = cmp.Or(r.Running, max(0, o.Executor.Limits.Running)) // never less than the executor's queue admits
	r.Logger = cmp.Or(r.Logger, o.Logger)
	if r.Interpreters == "" {
		interpreters, _ := interpreter.DefaultFolder() // without one, script tools say that they lack their interpreter
		r.Interpreters = string(interpreters)
	}
	cacheDir := ""
	if h.runtime, cacheDir, err = startedWith(ctx, r, r.CacheDir == "" && !o.NoCache); err != nil {
		return &Error{"open", ErrRuntime, err}
	}
	for _, dir := range []string{cacheDir, o.IndexDir, r.Interpreters} {
		if dir != "" {
			h.kept = append(h.kept, dir)
		}
	}
	return nil
}

// startedWith starts a runtime, with the default cache folder if it can be used and that is wanted. It also returns
// the cache folder that is used; "" for none.
func startedWith(
	ctx context.Context, r runtime.Options, defaultCache bool,
) (started *runtime.Runtime, cacheDir string, err error) {
	if !defaultCache {
		started, err = runtime.New(ctx, r)
		return started, r.CacheDir, err
	}
	cached := r
	var unusable error
	if cached.CacheDir, unusable = runtime.DefaultCacheDir(); unusable == nil {
		if started, unusable = runtime.New(ctx, cached); unusable == nil || r.FillCache {
			return started, cached.CacheDir, unusable
		}
	}
	if started, err = runtime.New(ctx, r); err != nil {
		return nil, "", err
	}
	if r.Logger != nil {
		r.Logger.WarnContext(ctx, "modules are compiled each time, since there is no folder to cache them in", "err",
			unusable)
	}
	if r.OnUncached != nil {
		r.OnUncached(unusable)
	}
	return started, "", nil
}

// load loads the tools of all sources.
func (h *Host) load(ctx context.Context, sources []string, load func(path string) (*manifests.Manifest, error)) error {
	var failed []error
	for i, source := range sources {
		err := h.registry.Load(ctx, sourceOf(source, load),
			func(ctx context.Context, m *manifests.Manifest) (registry.Tool, error) {
				return h.runtime.Load(ctx, m, h.policy.For(m.Name, m.File))
			})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if hidesNames(err) {
			h.problems = append(h.problems, err)
			for _, later := range sources[i+1:] {
				h.problems = append(h.problems, &registry.Error{Op: "load", Name: later, Err: fmt.Errorf(
					"not loaded, because %s was not, and may have tools with the same names", source)})
			}
			break
		}
		failed = append(failed, err)
	}
	var rejected []error
	for _, b := range h.registry.Broken() {
		rejected = append(rejected, b)
	}
	for _, d := range h.registry.Duplicates() {
		if d.Reason == registry.LookAlike && !d.Dropped.Alias && !d.Dropped.Retired {
			rejected = append(rejected, d)
		}
	}
	h.problems = append(rejected, h.problems...)
	if errors.Join(failed...) != nil || len(h.registry.List()) == 0 {
		return errors.Join(append(failed, h.problems...)...)
	}
	return nil
}

// confirm parses the manifests of these tools, and of those that they request to call, also indirectly. It fails if the
// index is wrong about one.
func (h *Host) confirm(names []string) error {
	confirmed := map[string]bool{}
	for next := slices.Clone(names); len(next) > 0; next = next[1:] {
		entry, known := h.registry.Get(next[0])
		if !known || confirmed[entry.Name] {
			continue
		}
		if err := entry.Manifest.Confirm(); err != nil {
			return err
		}
		confirmed[entry.Name] = true
		next = append(next, entry.Manifest.Permissions.Tools...)
	}
	return nil
}

// hidesNames reports whether a source was not loaded because the name in a manifest cannot be read.
func hidesNames(err error) bool {
	if errors.Is(err, registry.ErrSource) { // the caller has named what cannot be read
		return false
	}
	return errors.Is(err, manifests.ErrInvalid) || errors.Is(err, manifests.ErrFile) || errors.Is(err, registry.ErrUnread)
}

// Problems returns what kept tools from being loaded: a [*manifests.Error] for each broken manifest, a
// [*registry.DuplicateError] for each tool whose name looks like another's, and a [*registry.Error] for
// each source that was not loaded. Show them to the operator. A tool that has exactly the name of an
// earlier one is not among them, because operators replace tools in this way; see
// [registry.Registry.Duplicates].
func (h *Host) Problems() []error { return slices.Clone(h.problems) }

// start creates the executor.
func (h *Host) start(options Options) (err error) {
	e := options.Executor
	h.recorder = &recorder{
		state: options.StateDir, tools: h.registry, options: options.ledger(), redact: h.policy.Redact,
	}
	e.Logger = cmp.Or(e.Logger, options.Logger)
	if h.recorder.keeps() {
		e.Ledger = cmp.Or[executor.Ledger](e.Ledger, h.recorder)
		e.Pause.Claim = cmp.Or[executor.Claimer](e.Pause.Claim, h.recorder)
	}
	var resolver executor.Resolver = h.registry
	if options.Resolver != nil {
		resolver = options.Resolver(h.registry)
	}
	h.executor, err = executor.New(resolver, e)
	return err
}

// Close waits for running calls and closes the host. Later calls fail. When ctx is done, tools are
// closed without waiting for their calls, and the error says so. Close still waits for the runtime,
// unless the only guests left are ones that cannot be stopped ([runtime.ErrRunaway]). Close may be
// called more than once.
func (h *Host) Close(ctx context.Context) error {
	return errors.Join(h.registry.Close(ctx), h.runtime.Close(ctx), h.CloseRecords(ctx))
}
