package runtime

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/permit"
	"github.com/caisson-run/caisson/runtime/internal/script"
	"github.com/caisson-run/caisson/tool"
)

// Tool is a loaded manifest that can be invoked. It is immutable except for its compiled
// module, and safe for concurrent use. The runtime that loaded it owns it.
type Tool struct {
	runtime  *Runtime
	manifest *manifests.Manifest
	permit   *permit.Permit
	outline  *files.Outline // of the files of each call
	limits   Limits
	asks     string            // why calls must be approved; empty if they need no approval
	named    []string          // a command line without arguments
	terms    [sha256.Size]byte // the digest of the terms, which with the module decide the abilities of calls

	script      *script.Script   // nil for a module, and if broken
	broken      error            // why the script could not be read when the tool was loaded
	holdsScript bool             // in runtime.scripts, until the tool is closed; guarded by runtime.mu
	profiles    map[string]*Tool // under each profile that calls may name; nil if they may name none
	whole       *Tool            // the tool that this one narrows for calls under a profile; nil for that tool
	records     bool             // the inputs of calls

	compiling flights[*engine.Module]
	hashing   flights[engine.Digest]

	mu     sync.Mutex
	module *engine.Module // nil until needed; it may have been evicted since
	digest engine.Digest  // of the module or the script; zero until it is read, then it never changes

	program program
}

// Manifest returns the manifest that the tool was loaded from.
func (t *Tool) Manifest() *manifests.Manifest { return t.manifest }

// Limits returns the limits of each call. They are zero for a client-run tool, whose calls the
// runtime does not bound.
func (t *Tool) Limits() Limits { return t.limits }

// ProfileLimits returns the limits of calls whose arguments name a profile, by the profile's name. It returns nil
// if the manifest has no behavior.profile, so that no argument names one.
func (t *Tool) ProfileLimits() map[string]Limits {
	if t.profiles == nil {
		return nil
	}
	all := map[string]Limits{}
	for name, under := range t.profiles {
		all[name] = under.limits
	}
	return all
}

// Decisions returns the decision on each permission that the manifest requests.
func (t *Tool) Decisions() []tool.Decision { return slices.Clone(t.permit.Decisions) }

// Writable returns the host directories that calls of the tool with these context values may
// write to. It omits directories whose path needs a value that is missing, since such calls do
// not get them. The paths are for the operator, not for guests.
func (t *Tool) Writable(values map[string]string) []string {
	var dirs []string
	for _, mount := range t.permit.Mounts {
		if dir, err := mount.Host.Path(values); err == nil && mount.Access == manifests.AccessReadWrite {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// Unavailable returns the reason why the tool cannot be called, or "" if it can be.
func (t *Tool) Unavailable() string {
	if t.isCondemned() {
		return condemned
	}
	if t.broken != nil {
		return t.broken.Error()
	}
	if t.script != nil && t.ready() == nil {
		if missing := t.script.Missing(); missing != "" {
			return missing
		}
	}
	var missing []string
	for _, required := range t.manifest.Requires {
		alternatives := strings.Split(required, "|")
		if !slices.ContainsFunc(alternatives, t.has) {
			missing = append(missing, inWords(alternatives))
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "needs " + strings.Join(missing, ", ")
}

// inWords names a requirement of a manifest: "the setting A or B", "a granted directory at /data".
func inWords(alternatives []string) string {
	var settings, words []string
	for _, alternative := range alternatives {
		if strings.HasPrefix(alternative, "/") {
			words = append(words, "a granted directory at "+alternative)
		} else {
			settings = append(settings, alternative)
		}
	}
	if len(settings) > 0 {
		words = slices.Insert(words, 0, "the setting "+strings.Join(settings, " or "))
	}
	return strings.Join(words, " or ")
}

const condemned = "an earlier call could not be stopped, which is a bug in Caisson; the tool is disabled"

// isCondemned reports whether the tool's module had a runaway. It is false while the module is
// unknown.
func (t *Tool) isCondemned() bool {
	all := t.runtime.watchdog.Condemned()
	if all == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.script != nil {
		return all[t.script.Code()]
	}
	return all[t.digest]
}

// has reports whether a requirement of a manifest is met: a directory by a grant, and a setting by [Options.Settings]
// or by a variable or secret granted to the tool.
func (t *Tool) has(required string) bool {
	if strings.HasPrefix(required, "/") {
		return slices.ContainsFunc(t.permit.Mounts, func(m files.Mount) bool { return m.Guest.String() == required })
	}
	return slices.Contains(t.runtime.settings, required) || slices.Contains(t.permit.Settings, required)
}

// Close closes the tool's connections, and frees its started program. Calls that still run may fail. Closing the
// runtime closes the tools that are still open.
func (t *Tool) Close(ctx context.Context) error {
	t.runtime.mu.Lock()
	delete(t.runtime.permits, t.permit)
	if t.holdsScript {
		t.holdsScript = false
		t.runtime.scripts.Release(t.script.Tree)
	}
	t.runtime.mu.Unlock()
	err := errors.Join(t.permit.Close(), t.program.close())
	for _, under := range t.profiles {
		err = errors.Join(err, under.Close(ctx))
	}
	return err
}

// Prepare reads and compiles the module, so that the first call does not have to. The error
// wraps [ErrModule] or [ErrDigest] if the module is at fault. A client-run tool has no module;
// for it, Prepare does nothing.
func (t *Tool) Prepare(ctx context.Context) error {
	if t.isClients() {
		return nil
	}
	_, err := t.prepareModule(ctx)
	return err
}

func (t *Tool) ready() *engine.Module {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.module == nil || t.module.Evicted() {
		return nil
	}
	return t.module
}

func (t *Tool) prepareModule(ctx context.Context) (*engine.Module, error) {
	if err := cmp.Or(t.manifest.Confirm(), t.broken); err != nil {
		return nil, err
	}
	if module := t.ready(); module != nil {
		return module, nil
	}
	module, err := t.compiling.do(ctx, t.runtime.base, "compile", t.compile)
	if err != nil {
		return nil, err
	}
	digest := module.Digest()
	if t.script != nil {
		digest = t.script.Digest
	}
	if err := t.settle(digest, module); err != nil {
		return nil, err
	}
	return module, nil
}

func (t *Tool) isClients() bool { return t.manifest.Execution == manifests.ExecutionClient }

// settle records which module the tool has. It fails if the tool had a different one: grants to that module, and
// approvals of it, must not apply to this one. The same is true of the tool under each of its profiles.
func (t *Tool) settle(digest engine.Digest, compiled *engine.Module) error {
	if t.whole != nil {
		if err := t.whole.settle(digest, nil); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.digest != (engine.Digest{}) && t.digest != digest {
		return fmt.Errorf("%w: %s was %s when it was loaded and is %s now; load the tool again", ErrDigest,
			codeOf(t.manifest), t.digest, digest)
	}
	t.digest = digest
	if compiled != nil {
		t.module = compiled
	}
	return nil
}
