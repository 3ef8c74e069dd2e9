package runtime

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
)

// Options configure a [Runtime]. The zero value is safe.
type Options struct {
	// CacheDir keeps compiled code between processes; see [DefaultCacheDir]. It must
	// be for this user alone, as it holds native code. Empty: each process compiles.
	CacheDir string
	// CacheBytes is the most that the modules in CacheDir may take together, in bytes. When
	// one is added, those that were not used for the longest time go. Zero means 2 GiB; a
	// negative value is an error.
	CacheBytes int64
	// Memory bounds what is kept for later calls.
	Memory Memory
	// Compiler says where modules are compiled. For modules that are not trusted it
	// should be [ChildCompiler]'s.
	Compiler Compiler
	// TrustedModules are modules, by their SHA-256 in hex, whose compilation may take any
	// time and memory: they are compiled in this process, and not refused for their
	// complexity. In all else they are treated as any module is: validated, metered, and
	// contained.
	TrustedModules []string
	// Limits bound every call.
	Limits Limits
	// Concurrency bounds all calls together.
	Concurrency Concurrency
	// Settings names the settings that the operator has made. A tool that requires
	// others is unavailable.
	Settings []string
	// Logger receives the runtime's own failures, with the call's id. Nil: none.
	Logger *slog.Logger
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
	engine   *engine.Engine
	files    *files.Store
	ceiling  Limits
	gate     *gate
	settings []string
	logger   *slog.Logger
	random   io.Reader
	now      func() time.Time
}

// New starts a runtime.
func New(ctx context.Context, options Options) (*Runtime, error) {
	if options.Compiler.err != nil {
		return nil, options.Compiler.err
	}
	ceiling, err := options.Limits.complete()
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
		Functions: wasi.Functions(), Logger: logger,
	})
	if err != nil {
		return nil, fmt.Errorf("runtime: %w", err)
	}
	return &Runtime{
		engine: e, files: files.NewStore(files.Options{Logger: logger}), ceiling: ceiling,
		gate: newGate(concurrency), settings: options.Settings, logger: logger, random: rand.Reader, now: time.Now,
	}, nil
}

// Load makes a tool of a manifest. It reads no module: that happens at the first call,
// or at [Tool.Prepare], once for all tools of one module.
//
// It fails on what the manifest asks for and this version does not enforce (the error
// holds a [*manifests.Error]), and on grants that make no sense.
func (r *Runtime) Load(ctx context.Context, m *manifests.Manifest, grants manifests.Grants) (*Tool, error) {
	if err := errors.Join(ctx.Err(), checked(m)); err != nil {
		return nil, err
	}
	permit, err := newPermit(m, grants)
	if err != nil {
		return nil, err
	}
	return &Tool{runtime: r, manifest: m, permit: permit, limits: effective(r.ceiling, m.Limits)}, nil
}

// Close waits for the calls under way and frees the compiled code. Tools fail after it.
func (r *Runtime) Close(ctx context.Context) error { return r.engine.Close(ctx) }
