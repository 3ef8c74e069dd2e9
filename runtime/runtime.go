package runtime

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	goruntime "runtime"
	"slices"
	"sync"
	"time"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/internal/interpreter"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/abi"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/extism"
	"github.com/caisson-run/caisson/runtime/internal/permit"
	"github.com/caisson-run/caisson/runtime/internal/script"
	"github.com/caisson-run/caisson/runtime/internal/watchdog"
)

// Options configure a [Runtime]. The zero value is safe.
type Options struct {
	// CacheDir is the directory where compiled code is cached across processes; see
	// [DefaultCacheDir]. It holds native code, so it must be readable only by this user. If it
	// is empty, each process compiles modules itself.
	CacheDir string
	// CacheBytes is the maximum total size of the modules in CacheDir, in bytes. When a module
	// is added, the least recently used ones are evicted. Zero means 2 GiB; a negative value is
	// an error.
	CacheBytes int64
	// FillCache makes New fail if compiled code cannot be added to CacheDir. Otherwise New accepts a read-only directory,
	// if it has compiled code that no user except this one and root could have changed.
	FillCache bool
	// OnUncached is called at most once, if CacheDir can only be read and a module's code in it is not used, so that every
	// process compiles the module again. The error gives the reason, which the Logger receives too. OnUncached may be nil,
	// and must return soon.
	OnUncached func(error)
	// Interpreters is the folder where the interpreters of script tools are installed, with
	// the command "caisson interpreters". If it is empty, script tools are unavailable.
	Interpreters string
	// Memory bounds the memory that is kept for later calls.
	Memory Memory
	// Compiler says where modules are compiled. [ChildCompiler] accepts more complex untrusted
	// functions than the zero value, since the child process can be stopped at any time.
	Compiler Compiler
	// TrustedModules lists modules, by SHA-256 of their files in hex, whose compilation may take any amount of
	// time and memory. They are compiled in this process and are not refused for their
	// complexity. Otherwise they are validated, metered and contained like any module.
	TrustedModules []string
	// Profile bounds every tool and every call. The zero value is the standard profile, whose
	// limits are documented at [Limits].
	Profile manifests.Profile
	// Profiles are those that calls may name, if the manifest lets an argument do so
	// (behavior.profile). Nil means the built-in ones. They narrow a call and never widen it.
	Profiles []manifests.Profile
	// Limits bound every call. Nonzero limits override the profile's.
	Limits Limits
	// Running is the maximum number of guests that run at a time, over all tools. Zero means 4 for
	// each processor that Go uses, at least 16; a negative number is an error. A call beyond that
	// is refused as busy at once: callers that should wait need a queue, as package executor has.
	//
	// A tool called by a tool runs in its caller's slot. For each call, as many guests as its calls
	// nest, at most 17, may hold memory at a time, of which one runs. A tool whose caller belongs to
	// another Runtime counts here too, but is never refused: Running may be exceeded by the number
	// of such callers.
	Running int
	// Settings names the settings that the operator has made, in addition to the variables and
	// secrets granted to tools. A tool that requires any other setting is unavailable.
	Settings []string
	// LookupEnv reads the environment variables that grants name as the source of secrets. It
	// is typically os.LookupEnv. If it is nil, no variable is set.
	LookupEnv func(name string) (value string, ok bool)
	// Resolver resolves the hosts that tools connect to. Nil means the system resolver.
	Resolver *net.Resolver
	// Logger receives the runtime's own failures, with the call's id. Nil discards them.
	Logger *slog.Logger
	// OnRunaway is called once for each guest that cannot be stopped (see [Runaway]). That is a bug in this package.
	// The runtime abandons the guest: it logs the failure, makes the module's tools unavailable, and ends the call
	// with the kind [tool.Deadline], or [tool.Cancelled] if it was cancelled. It can end the call only if the call's
	// host has a method Abandon(tool.Outcome, error), as the executor's host does; otherwise Invoke does not return.
	// Until the guest returns, it occupies its slot in [Options.Running], a processor and its memory; its result is
	// then discarded. The program should exit soon, once its other calls have ended.
	//
	// OnRunaway is not called if a garbage collection is already waiting for the guest, or if
	// runaways occupy all the processors that Go uses: no goroutine runs then. Use [LastResort]
	// for that case. OnRunaway must return soon, since the call waits for it. It may be nil.
	OnRunaway func(Runaway)
	// HostFunctions are functions of the program that Extism plug-ins can import. Each needs a
	// permission; see [HostFunction]. No two may have the same name in permissions.
	HostFunctions []HostFunction
	// LastResort ends the process when no goroutine can. Nil means that nothing does.
	LastResort LastResort
}

// Memory bounds what a [Runtime] keeps in memory for later calls. The least recently used
// entries are evicted first, which only makes the next call that needs them slower. Zero means
// the value named at each field; a negative value is an error.
type Memory struct {
	Instances manifests.Bytes // idle instances with all that they do not share: 256 MiB
	IdleTime  time.Duration   // how long an idle instance is kept: a minute
	Modules   manifests.Bytes // compiled modules, as far as their size is known, and images of instances: 1 GiB
	// Scripts bounds the scripts and unpacked packages of all open tools, of which equal files count once: 512 MiB. A
	// tool that does not fit when it is loaded is unavailable.
	Scripts manifests.Bytes
}

const defaultScripts = 512 << 20

// Runtime loads tools and runs their calls. It owns every tool that it loads. The caller must
// close it.
type Runtime struct {
	engine       *engine.Engine
	base         context.Context // of work that outlives the call that began it; keeps nothing of a call
	files        *files.Store
	profile      manifests.Profile
	profiles     []manifests.Profile
	ceiling      Limits
	gate         *gate
	watchdog     *watchdog.Watchdog
	work         *abi.Work
	interpreters interpreter.Folder
	scripts      *guestfiles.Contents
	unpacking    chan struct{}  // holds an element while a script is read, with its packages
	functions    []HostFunction // of the embedding program
	settings     []string
	lookupEnv    func(string) (string, bool)
	resolver     *net.Resolver
	logger       *slog.Logger
	random       io.Reader
	now          func() time.Time
	readers      chan struct{} // holds an element per call whose long output is being read; see takeReader
	modules      chan struct{} // a semaphore for those that read modules

	closing  sync.Once
	closed   chan struct{} // closed when everything is freed
	closeErr error         // set before closed is closed

	mu      sync.Mutex
	permits map[*permit.Permit]struct{} // of the open tools; nil once the runtime is closed
}

// New starts a runtime.
func New(ctx context.Context, options Options) (*Runtime, error) {
	r, err := newWith(ctx, options, offeredFunctions())
	if err != nil {
		return nil, &Error{Op: "new", Err: err}
	}
	return r, nil
}

// newWith is like New, but offers these functions to guests.
func newWith(ctx context.Context, options Options, functions []hostfuncs.Function) (*Runtime, error) {
	if options.Compiler.err != nil {
		return nil, options.Compiler.err
	}
	ceiling, err := options.Limits.or(Limits(options.Profile.Limits)).complete()
	if err != nil {
		return nil, err
	}
	if options.Running < 0 {
		return nil, fmt.Errorf("%w: Running is %d", errNegativeLimit, options.Running)
	}
	if options.Memory.Scripts < 0 {
		return nil, fmt.Errorf("%w: Memory.Scripts is %d", errNegativeLimit, options.Memory.Scripts)
	}
	logger := options.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	embedded, err := hostFunctions(options.HostFunctions)
	if err != nil {
		return nil, err
	}
	trusted, err := parseDigests(options.TrustedModules)
	if err != nil {
		return nil, err
	}
	e, err := engine.New(ctx, engine.Options{
		CacheDir: options.CacheDir, CacheBytes: options.CacheBytes, FillCache: options.FillCache,
		OnUncached: options.OnUncached, Compiler: options.Compiler.child, Trusted: trusted,
		IdleBytes: int64(options.Memory.Instances), IdleTime: options.Memory.IdleTime,
		ModuleBytes: int64(options.Memory.Modules),
		Functions:   functions, Kernel: extism.Kernel(embedded), Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	profiles := options.Profiles
	if profiles == nil {
		profiles = manifests.BuiltinProfiles()
	}
	gate := &gate{limit: int64(cmp.Or(options.Running, max(16, 4*goruntime.GOMAXPROCS(0))))}
	return &Runtime{
		engine: e, base: context.WithoutCancel(ctx), files: files.NewStore(logger),
		profile: options.Profile, profiles: profiles, ceiling: ceiling,
		gate: gate, work: abi.NewWork(goruntime.GOMAXPROCS(0)),
		watchdog:     newWatchdog(options.OnRunaway, options.LastResort, logger),
		interpreters: interpreter.Folder(options.Interpreters),
		scripts:      guestfiles.NewContents(int64(cmp.Or(options.Memory.Scripts, defaultScripts))),
		unpacking:    make(chan struct{}, 1), functions: slices.Clone(options.HostFunctions),
		settings: options.Settings, lookupEnv: options.LookupEnv, resolver: options.Resolver,
		logger: logger, random: rand.Reader, now: time.Now,
		readers: make(chan struct{}, goruntime.GOMAXPROCS(0)),
		modules: make(chan struct{}, max(1, goruntime.GOMAXPROCS(0)/2)), closed: make(chan struct{}),
		permits: map[*permit.Permit]struct{}{},
	}, nil
}

// Load returns the tool described by a manifest. It does not compile the module, and reads it
// only if some grant is bound to a module digest. The first call or [Tool.Prepare] compiles it,
// once for all tools that share the module.
//
// Load fails if the manifest requests something that this version does not enforce (the error
// wraps a [*manifests.Error]), or if the grants are invalid.
func (r *Runtime) Load(ctx context.Context, m *manifests.Manifest, grants manifests.Grants) (*Tool, error) {
	t, err := r.loadWith(ctx, m, grants)
	if err != nil {
		return nil, notLoaded(m.Name, err)
	}
	return t, nil
}

// loadWith is like [Runtime.Load], and gives the tool its own mounts, which no grant covers.
func (r *Runtime) loadWith(
	ctx context.Context, m *manifests.Manifest, grants manifests.Grants, own ...files.Mount,
) (_ *Tool, err error) {
	if err := errors.Join(ctx.Err(), checkSupported(m)); err != nil {
		return nil, err
	}
	with := content{files: own}
	if m.Module.Language != modules.LanguageNone {
		if with.script, with.broken = r.loadScript(ctx, m); with.broken == nil {
			with.digest = with.script.Digest
			with.files = append(with.files, files.Mount{
				Guest: permission.NewGuestPath(script.Folder), Tree: with.script.Tree, Program: script.Program,
			})
		} else if err := ctx.Err(); err != nil {
			return nil, err
		}
	} else if with.digest, err = r.digestOfBound(ctx, m, grants); err != nil {
		return nil, err
	}
	t, err := r.newTool(m, grants, with, r.ceiling)
	if err != nil {
		if with.script != nil {
			r.scripts.Release(with.script.Tree)
		}
		return nil, err
	}
	t.holdsScript = with.script != nil
	if m.Behavior.Profile == "" {
		return t, nil
	}
	t.profiles = map[string]*Tool{}
	for _, profile := range r.profiles {
		narrowed := grants
		if profile.NoNetwork {
			narrowed.NoNetwork = cmp.Or(narrowed.NoNetwork, profile.Name)
		}
		if profile.NoWrites {
			narrowed.NoWrites = cmp.Or(narrowed.NoWrites, profile.Name)
		}
		under, err := r.newTool(m, narrowed, with, r.ceiling.narrowed(Limits(profile.Limits)))
		if err != nil {
			return nil, errors.Join(err, t.Close(ctx))
		}
		under.whole, t.profiles[profile.Name] = t, under
	}
	return t, nil
}

// content holds the parts of a tool that are not in its manifest.
type content struct {
	files  []files.Mount  // its own
	digest engine.Digest  // of the module; zero if it is not read yet
	script *script.Script // nil for a module, and if it cannot be read
	broken error          // why a script cannot be read; the tool is unavailable then
}

// newTool returns a tool whose limits are below the ceiling.
func (r *Runtime) newTool(m *manifests.Manifest, grants manifests.Grants, with content, ceiling Limits) (*Tool, error) {
	if grants.NoNetwork == "" && r.profile.NoNetwork {
		grants.NoNetwork = r.profile.Name
	}
	if grants.NoWrites == "" && r.profile.NoWrites {
		grants.NoWrites = r.profile.Name
	}
	p, err := permit.New(permit.Options{
		Manifest: m, Grants: grants, Module: moduleText(with.digest), LookupEnv: r.lookupEnv, Resolver: r.resolver,
		Logger: r.logger,
	})
	if err != nil {
		return nil, &grantError{err}
	}
	if err := p.MountOwn(with.files); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	// Keep the digest: a grant to one module must not apply to a later one at the same path.
	t := &Tool{runtime: r, manifest: m, permit: p, asks: p.Asks(), digest: with.digest, script: with.script,
		broken: with.broken, named: []string{m.Name}}
	if !t.isClients() {
		t.limits = effective(ceiling, m.Limits)
	}
	if t.outline, err = files.NewOutline(p.Mounts, t.fileLimits()); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	t.records = grants.RecordInputs
	if t.terms, err = p.TermsDigest(manifests.Limits(t.limits)); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.permits == nil {
		return nil, errors.Join(engine.ErrClosed, p.Close())
	}
	r.permits[p] = struct{}{}
	return t, nil
}

func (t *Tool) fileLimits() files.Limits {
	return files.Limits{Tool: t.manifest.Name, OpenFiles: t.limits.OpenFiles, AddedBytes: t.limits.DiskBytes}
}

// Close waits for running calls and frees compiled code and connections. Calls made after Close
// fail. Close may be called more than once, also concurrently: every call waits for the same
// shutdown and returns the same error.
//
// Close does not wait for guests that cannot be stopped. If only those are left, it returns [ErrRunaway]. The resources
// that they may still use are freed if they return.
func (r *Runtime) Close(ctx context.Context) error {
	r.closing.Do(func() {
		go func() {
			defer close(r.closed)
			r.closeErr = r.shutDown(ctx)
		}()
	})
	select {
	case <-r.closed:
		return r.closeErr
	case <-r.watchdog.OnlyStuck():
		return &Error{Op: "close", Err: ErrRunaway}
	}
}

// shutDown waits for all guests, including those that cannot be stopped, and frees the runtime's resources.
func (r *Runtime) shutDown(ctx context.Context) error {
	failures := []error{r.engine.Close(ctx)}
	r.watchdog.Stop()
	r.mu.Lock()
	permits := r.permits
	r.permits = nil
	r.mu.Unlock()
	for p := range permits {
		failures = append(failures, p.Close())
	}
	if err := errors.Join(failures...); err != nil {
		return &Error{Op: "close", Err: err}
	}
	return nil
}
