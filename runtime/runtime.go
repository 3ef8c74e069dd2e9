package runtime

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	goruntime "runtime"
	"sync"
	"time"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/abi"
	"github.com/caisson-run/caisson/runtime/internal/engine"
)

// Options configure a [Runtime]. The zero value is safe.
type Options struct {
	// CacheDir keeps compiled code between processes; see [DefaultCacheDir]. It must
	// be readable by this user only, as it holds native code. Empty: each process compiles.
	CacheDir string
	// CacheBytes is the most that the modules in CacheDir may take together, in bytes. When
	// one is added, those that were not used for the longest time go. Zero means 2 GiB; a
	// negative value is an error.
	CacheBytes int64
	// Memory bounds what is kept for later calls.
	Memory Memory
	// Compiler says where modules are compiled. [ChildCompiler]'s takes more complex ones of
	// strangers than the zero value, since it can be stopped.
	Compiler Compiler
	// TrustedModules are modules, by their SHA-256 in hex, whose compilation may take any
	// time and memory: they are compiled in this process, and not refused for their
	// complexity. In all else they are treated as any module is: validated, metered, and
	// contained.
	TrustedModules []string
	// Profile bounds every tool and every call. The zero value is the profile standard, whose
	// limits are those that [Limits] names.
	Profile manifests.Profile
	// Limits bound every call. Those that are not zero take the place of the profile's.
	Limits Limits
	// Concurrency bounds all calls together.
	Concurrency Concurrency
	// Settings names the settings that the operator has made, beside the variables and
	// secrets that tools are granted. A tool that requires others is unavailable.
	Settings []string
	// LookupEnv reads the environment variables in which grants say that secrets are kept,
	// such as os.LookupEnv. Nil: there are none.
	LookupEnv func(name string) (value string, ok bool)
	// Resolver finds the addresses of the hosts that tools reach. Nil: the system's.
	Resolver *net.Resolver
	// Logger receives the runtime's own failures, with the call's id. Nil: none.
	Logger *slog.Logger
	// OnRunaway is called once for each guest that is not back a second after its deadline. That is
	// a bug of this package's. The runtime gives the guest up: it logs the fact, refuses further
	// calls of the module, whose tools become unavailable, and ends the call with the kind
	// [tool.Deadline], if the call's host has a method Abandon(tool.Outcome, error), as the
	// executor's has; else Invoke does not return. The guest keeps its place in
	// [Options.Concurrency], a processor and its memory, until it comes back, and what it returns
	// then is dropped. A program should end soon, once its other calls have.
	//
	// It is not called where a garbage collection has begun to wait for the guest, or where such
	// guests have all the processors that Go uses: no goroutine runs then. [LastResort] is for that.
	// It must return soon, as the call waits for it. Nil: nobody is called.
	OnRunaway func(Runaway)
	// LastResort ends the process where nothing in it can. Nil: nothing does.
	LastResort LastResort
}

// Memory bounds what a [Runtime] keeps in memory for later calls. What was used longest ago
// goes first; a call that needs it again takes longer, and is the same otherwise. Zero means
// the value named at each field; a negative value is an error.
type Memory struct {
	Instances manifests.Bytes // of instances without a call, beside what they share: 256 MiB
	IdleTime  time.Duration   // after which an instance goes that nobody uses: a minute
	Modules   manifests.Bytes // of compiled modules, as far as it is known: 1 GiB
}

// Runtime loads tools and runs their calls. Close it; it owns every tool it loaded.
type Runtime struct {
	engine    *engine.Engine
	files     *files.Store
	profile   manifests.Profile
	ceiling   Limits
	gate      *gate
	watchdog  *watchdog
	work      *abi.Work
	settings  []string
	lookupEnv func(string) (string, bool)
	resolver  *net.Resolver
	logger    *slog.Logger
	random    io.Reader
	now       func() time.Time
	readers   chan struct{} // holds an element for each call whose long output is read; see takeReader

	closing  sync.Once
	closed   chan struct{} // closed when all is freed
	closeErr error         // what came of that

	mu      sync.Mutex
	permits map[*permit]struct{} // of the tools that are not closed
}

// New starts a runtime.
func New(ctx context.Context, options Options) (*Runtime, error) {
	return newWith(ctx, options, offered())
}

// newWith starts a runtime that offers these functions to guests.
func newWith(ctx context.Context, options Options, functions []hostfuncs.Function) (*Runtime, error) {
	if options.Compiler.err != nil {
		return nil, options.Compiler.err
	}
	ceiling, err := options.Limits.under(options.Profile.Limits).complete()
	if err != nil {
		return nil, err
	}
	concurrency, err := options.Concurrency.complete()
	if err != nil {
		return nil, err
	}
	logger := options.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	trusted, err := digests(options.TrustedModules)
	if err != nil {
		return nil, err
	}
	e, err := engine.New(ctx, engine.Options{
		CacheDir: options.CacheDir, CacheBytes: options.CacheBytes, Compiler: options.Compiler.child, Trusted: trusted,
		IdleBytes: int64(options.Memory.Instances), IdleTime: options.Memory.IdleTime, ModuleBytes: int64(options.Memory.Modules),
		Functions: functions, Logger: logger,
	})
	if err != nil {
		return nil, fmt.Errorf("runtime: %w", err)
	}
	gate := newGate(concurrency)
	return &Runtime{
		engine: e, files: files.NewStore(files.Options{Logger: logger}), profile: options.Profile, ceiling: ceiling,
		gate: gate, work: abi.NewWork(goruntime.GOMAXPROCS(0)), watchdog: newWatchdog(gate, logger, options.OnRunaway, options.LastResort), settings: options.Settings, lookupEnv: options.LookupEnv, resolver: options.Resolver,
		logger: logger, random: rand.Reader, now: time.Now,
		readers: make(chan struct{}, goruntime.GOMAXPROCS(0)), closed: make(chan struct{}), permits: map[*permit]struct{}{},
	}, nil
}

// Load makes a tool of a manifest. It reads no module, unless a grant is for a certain one:
// that happens at the first call, or at [Tool.Prepare], once for all tools of one module.
//
// It fails on what the manifest asks for and this version does not enforce (the error
// holds a [*manifests.Error]), and on grants that make no sense.
func (r *Runtime) Load(ctx context.Context, m *manifests.Manifest, grants manifests.Grants) (*Tool, error) {
	if err := errors.Join(ctx.Err(), checked(m)); err != nil {
		return nil, err
	}
	digest, err := digestOfBound(m, grants)
	if err != nil {
		return nil, err
	}
	p, err := r.newPermit(m, grants, moduleText(digest))
	if err != nil {
		return nil, err
	}
	// What is granted to a module, by its digest, must not pass to the one that is there later.
	t := &Tool{runtime: r, manifest: m, permit: p, asks: p.asks(m, grants), digest: digest}
	if !t.isClients() {
		t.limits = effective(r.ceiling, m.Limits)
	}
	if t.terms, err = p.termsDigest(m, t.limits, grants); err != nil {
		return nil, errors.Join(err, p.close())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.permits == nil {
		return nil, errors.Join(fmt.Errorf("runtime: %w", engine.ErrClosed), p.close())
	}
	r.permits[p] = struct{}{}
	return t, nil
}

// Runaways returns how many guests could not be stopped so far; see [Options.OnRunaway].
func (r *Runtime) Runaways() int64 { return r.watchdog.runaways() }

// Close waits for the calls under way and frees the compiled code and the connections. Tools
// fail after it. It can be called again, also meanwhile: whoever calls it waits as the first does,
// and is told the same.
//
// It does not wait for guests that cannot be stopped. Where none but such are left, it fails with
// [ErrRunaway]: what they might use stays as it is, and is freed if they come back.
func (r *Runtime) Close(ctx context.Context) error {
	r.closing.Do(func() {
		go func() {
			defer close(r.closed)
			r.closeErr = r.free(ctx)
		}()
	})
	select {
	case <-r.closed:
		return r.closeErr
	case <-r.watchdog.onlyStuck():
		return fmt.Errorf("runtime: %w", ErrRunaway)
	}
}

// free waits for all guests, whether they can be stopped or not, and frees what they use.
func (r *Runtime) free(ctx context.Context) error {
	failures := []error{r.engine.Close(ctx)}
	r.watchdog.stop()
	r.mu.Lock()
	permits := r.permits
	r.permits = nil
	r.mu.Unlock()
	for p := range permits {
		failures = append(failures, p.close())
	}
	return errors.Join(failures...)
}
