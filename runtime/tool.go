package runtime

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/tool"
)

// Tool is a manifest that can be invoked. It is immutable but for its compiled module,
// and safe for concurrent use. The runtime that loaded it owns it.
type Tool struct {
	runtime  *Runtime
	manifest *manifests.Manifest
	permit   *permit
	limits   Limits
	asks     string            // why calls must be approved; empty where they need not
	terms    [sha256.Size]byte // the digest of what decides, besides the module, what calls can do

	mu     sync.Mutex
	module *engine.Module // nil until it is needed; it may have been evicted since
	digest engine.Digest  // of the module, once it was read; it never changes then

	program program
}

// Manifest returns what the tool was loaded from.
func (t *Tool) Manifest() *manifests.Manifest { return t.manifest }

// Limits returns the limits of each call. They are zero for a tool that the client runs: nothing
// here bounds its calls.
func (t *Tool) Limits() Limits { return t.limits }

// Decisions returns what became of each permission that the manifest asks for.
func (t *Tool) Decisions() []tool.Decision { return slices.Clone(t.permit.decisions) }

// Writable returns the host directories that calls of the tool with these context values may write
// to. Those of which a value is missing are left out: such calls get none of them. It is for the
// operator, and safe for concurrent use.
func (t *Tool) Writable(values map[string]string) []string {
	var dirs []string
	for _, mount := range t.permit.mounts {
		if dir, err := mount.Host.Path(values); err == nil && mount.Access == manifests.ReadWrite {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// Unavailable says why the tool can't be called, or is empty.
func (t *Tool) Unavailable() string {
	if t.isCondemned() {
		return condemned
	}
	var missing []string
	for _, required := range t.manifest.Requires {
		alternatives := strings.Split(required, "|")
		if !slices.ContainsFunc(alternatives, t.hasSetting) {
			missing = append(missing, strings.Join(alternatives, " or "))
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "needs the setting " + strings.Join(missing, ", ")
}

const condemned = "an earlier call of it could not be stopped, which is a bug in Caisson; it is not called again"

// isCondemned reports whether the tool's module had a runaway, as far as its module is known.
func (t *Tool) isCondemned() bool {
	if t.runtime.watchdog.condemned.Load() == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.runtime.watchdog.hasCondemned(t.digest)
}

// hasSetting reports whether the operator has made a setting: by name, as a variable or as a
// secret that the tool is granted.
func (t *Tool) hasSetting(name string) bool {
	return slices.Contains(t.runtime.settings, name) || slices.Contains(t.permit.settings, name)
}

// Close frees what the tool holds for later calls: its connections. It must not be called
// while calls are under way. The runtime closes the tools that are left.
func (t *Tool) Close(context.Context) error {
	t.runtime.mu.Lock()
	delete(t.runtime.permits, t.permit)
	t.runtime.mu.Unlock()
	return t.permit.close()
}

// Prepare reads and compiles the module, so that the first call does not have to. The
// error wraps [ErrModule] or [ErrDigest] where the module is at fault. A tool that the client runs
// has none, and is always prepared.
func (t *Tool) Prepare(ctx context.Context) error {
	if t.isClients() {
		return nil
	}
	_, err := t.prepared(ctx)
	return err
}

func (t *Tool) prepared(ctx context.Context) (*engine.Module, error) {
	t.mu.Lock()
	module := t.module
	t.mu.Unlock()
	if module != nil && !module.Evicted() {
		return module, nil
	}
	// Not under the lock: the engine lets only one of several compile.
	module, err := t.runtime.compile(ctx, t.manifest)
	if err != nil {
		return nil, err
	}
	if err := t.settle(module.Digest(), module); err != nil {
		return nil, err
	}
	return module, nil
}

// Invoke runs one call in a fresh instance. Outcome.Result is always filled in. The
// error is nil when the tool came to an end of its own, also when it reported failure;
// otherwise it is a [*tool.Error], and Outcome.Result has the same kind and message.
//
// The arguments must fit the manifest's schema and hold its context values. The timeout
// of the tool's limits begins once the module is compiled. A tool that the client runs refuses all
// calls, with the kind [tool.Denied].
func (t *Tool) Invoke(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	run := &run{tool: t, invocation: invocation}
	outcome, err := run.do(ctx)
	for _, d := range outcome.Denials {
		t.runtime.logger.WarnContext(ctx, "denied", "call_id", invocation.CallID, "tool", t.manifest.Name,
			"permission", d.Permission, "value", d.Value, "rule", d.Rule)
	}
	if err == nil {
		return outcome, nil
	}
	var failure *tool.Error
	if errors.As(err, &failure) && failure.Kind == tool.Internal {
		t.runtime.logger.ErrorContext(ctx, "call failed", "call_id", invocation.CallID, "tool", t.manifest.Name, "err", failure.Err)
	}
	return outcome, err
}
