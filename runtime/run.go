package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/abi"
	"github.com/caisson-run/caisson/runtime/internal/answer"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/extism"
	"github.com/caisson-run/caisson/runtime/internal/permit"
	"github.com/caisson-run/caisson/runtime/internal/script"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
	"github.com/caisson-run/caisson/runtime/internal/watchdog"
	"github.com/caisson-run/caisson/tool"
)

// run is one call in progress.
type run struct {
	tool       *Tool
	invocation tool.Invocation
	system     wasi.System
	answer     answer.Answer
	noted      bool               // makeNotes was called
	view       *files.View        // nil for a plug-in that cannot use files
	host       host               // the guest's
	deadline   *watchdog.Deadline // the guest's, once it has begun
	slot       *nestedSlot        // of the calling tool, in which the call runs; nil if no tool made the call
	lease      *lease             // of the slot
	guest      watchdog.Guest
	recording
}

func (t *Tool) newRun(invocation tool.Invocation) *run {
	return &run{tool: t, invocation: invocation, answer: answer.Answer{
		Tool: invocation.Tool, CallID: invocation.CallID, Manifest: t.manifest, Limits: manifests.Limits(t.limits),
		Readers: t.runtime.readers,
	}}
}

func (r *run) do(ctx context.Context) (tool.Outcome, error) {
	t := r.tool
	if reason := t.Unavailable(); reason != "" {
		return r.answer.Fail(tool.Denied, "the tool is unavailable: "+reason, nil)
	}
	if t.isClients() {
		return r.answer.Deny(tool.Denial{Permission: "execution", Value: t.manifest.Name,
			Rule: "the client runs this tool; the runtime cannot run its calls"})
	}
	module, err := r.module(ctx)
	if err != nil {
		return r.fail(ctx, err)
	}
	if t.runtime.watchdog.Condemned()[module.Digest()] { // the digest may not have been known before
		return r.answer.Fail(tool.Denied, "the tool is unavailable: "+condemned, nil)
	}
	for _, name := range t.manifest.Context {
		if _, granted := t.permit.Context[name]; !granted {
			return r.answer.Deny(tool.Denial{Permission: "context", Value: name, Rule: "no grant lets this tool have it",
				Allow: permit.AllowContext(t.manifest.Name, name)})
		}
	}
	if d := r.invocation.Request.Definition; len(d) > 0 && !json.Valid(d) {
		return r.fail(ctx, errors.New("Request.Definition is not JSON"))
	}
	var arguments []string
	if templates := t.manifest.Module.Args; len(templates) > 0 {
		var err error
		if arguments, err = modules.ExpandArgs(templates, r.invocation.Arguments); err != nil {
			return r.answer.Fail(tool.InvalidArguments, err.Error(), err)
		}
	}
	inside, err := r.enter(ctx)
	if err != nil {
		return r.fail(ctx, err)
	}
	defer r.leave()
	return r.runInside(inside, module, arguments)
}

// module returns the tool's module, and counts how long the call waits for it.
func (r *run) module(ctx context.Context) (*engine.Module, error) {
	if module := r.tool.ready(); module != nil {
		return module, nil
	}
	began := time.Now()
	defer func() { r.answer.Usage.Compile += time.Since(began) }()
	return r.tool.prepareModule(ctx)
}

// enter admits the call and returns the context to run it in. A call in a nested slot waits for a lease of it. Unless
// enter fails, the caller must call leave.
func (r *run) enter(ctx context.Context) (inside context.Context, err error) {
	gate := r.tool.runtime.gate
	if r.slot = nestedSlotOf(ctx); r.slot == nil {
		return ctx, gate.enter()
	}
	if inside, r.lease, err = r.slot.acquire(ctx); err != nil {
		return nil, err
	}
	if !r.slot.holds(r.tool.runtime) {
		// A call in a slot of another runtime is not refused here: it would fail after its guest had
		// begun. The other runtime's slots still bound how many such calls there are.
		gate.enterNow()
	}
	return inside, nil
}

func (r *run) leave() {
	if !r.slot.holds(r.tool.runtime) {
		r.tool.runtime.gate.leave()
	}
	if r.slot != nil {
		r.lease.release()
	}
}

// runInside runs the call after enter has admitted it.
func (r *run) runInside(ctx context.Context, module *engine.Module, arguments []string) (tool.Outcome, error) {
	t := r.tool
	plugin := isPlugin(t.manifest, module.Description())
	if !plugin || t.mayUseFiles(module.Description()) {
		view, err := t.runtime.files.Open(ctx, t.outline, r.invocation.Context)
		if err != nil {
			return r.notOpened(ctx, err)
		}
		r.view = view
		defer view.Close()
	}
	r.prepareHost()
	defer r.host.close()
	if err := r.prepare(arguments, plugin); err != nil {
		return r.fail(ctx, err)
	}
	return r.execute(ctx, module)
}

// mayUseFiles reports whether calls of a plug-in may use files, or are granted directories, which must
// exist. A plug-in without WASI has no functions for files.
func (t *Tool) mayUseFiles(description *wasm.Module) bool {
	return len(t.permit.Mounts) > 0 || len(t.manifest.Module.Libraries) > 0 || // which may import WASI
		slices.ContainsFunc(description.Imports, func(i wasm.Import) bool { return wasi.IsModule(i.Module) })
}

// notOpened returns the outcome of a call whose directories could not be opened.
func (r *run) notOpened(ctx context.Context, err error) (tool.Outcome, error) {
	refused, ok := errors.AsType[*files.Error](err)
	switch {
	case !ok:
		return r.fail(ctx, err)
	case refused.Denial != nil:
		return r.answer.Deny(*refused.Denial)
	case errors.Is(err, errno.NotExist):
		return r.answer.Deny(tool.Denial{Permission: "files", Value: refused.Path,
			Rule: "the directory granted for it does not exist; make it, or correct the context value that names it"})
	}
	return r.fail(ctx, err)
}

func (r *run) execute(ctx context.Context, module *engine.Module) (tool.Outcome, error) {
	t := r.tool
	a := &r.answer
	if r.replayed != nil {
		a.Fuel, a.CallersFuel = r.replayed.Limits.Fuel, r.replayed.CallersFuel
	} else if a.Fuel, a.CallersFuel = r.slot.fuel(t.limits.Fuel); a.CallersFuel && a.Fuel == 0 {
		return a.Fail(tool.Fuel, "the tool that made the call has no fuel left", nil)
	}
	a.Began = true
	defer func() { r.deadline.Release() }()
	used, err := r.runOnce(ctx, module)
	for errors.Is(err, engine.ErrEvicted) { // evicted since it was prepared
		r.deadline.Release()
		if module, err = r.module(ctx); err != nil {
			return r.fail(ctx, err)
		}
		used, err = r.runOnce(ctx, module)
	}
	if errors.Is(err, ErrRunaway) {
		return r.late()
	}
	r.slot.charge(used)
	fuel := used.Fuel // a copy, so that the record does not keep all of used alive
	a.Usage.Fuel, a.Usage.MemoryBytes, a.Usage.Wall = &fuel, used.MemoryBytes, time.Since(r.system.Started)
	r.collect()
	r.tellWithheld(ctx)
	if errors.Is(err, engine.ErrModule) {
		err = unusable(t.manifest, engine.Source{}, err)
	}
	outcome, err := a.Outcome(r.deadline, ctx, used, err)
	outcome.Inputs = r.inputs(ctx, outcome.Result.Kind)
	return outcome, err
}

// fail returns the outcome of a call that ended before its guest began.
func (r *run) fail(ctx context.Context, err error) (tool.Outcome, error) {
	switch {
	case errors.Is(err, engine.ErrModule):
		err = unusable(r.tool.manifest, engine.Source{}, err)
	case errors.Is(err, errBusy):
		return r.answer.Fail(tool.Busy, err.Error(), err)
	}
	return r.answer.Failed(ctx, err)
}

// runOnce starts the guest's deadline and runs the guest. It fails with ErrRunaway if the guest was
// abandoned in the meantime.
func (r *run) runOnce(ctx context.Context, module *engine.Module) (used engine.Usage, err error) {
	t, g := r.tool, &r.guest
	r.system.Started = t.runtime.now()
	r.deadline = watchdog.NewDeadline(ctx, r.system.Started.Add(r.timeout()))
	g.Owner, g.Tool, g.CallID, g.Ctx, g.Module, g.Began = r, t.manifest.Name, r.invocation.CallID, ctx, module.Digest(),
		r.system.Started
	g.Deadline, _ = r.deadline.Deadline()
	t.runtime.watchdog.Enter(g)
	defer func() {
		if t.runtime.watchdog.Leave(g) {
			err = ErrRunaway
		}
	}()
	inside := r.host.open(abi.With(r.deadline, &r.host.session), t)
	run := engine.Run{Fuel: r.answer.Fuel, Watched: &g.Watched, Tape: r.newTape()}
	if r.answer.Plugin == nil {
		return r.runIn(inside, module, run)
	}
	run.Result = &r.answer.Returned
	if used, err = r.runIn(extism.With(inside, r.answer.Plugin), module, run); err != nil {
		r.answer.Returned = 0
		return used, err
	}
	r.answer.Returned = uint64(numberOf(t.manifest, module.Description(), r.answer.Returned))
	return used, nil
}

// prepare sets up the guest's WASI system and, for a plug-in, its session.
func (r *run) prepare(arguments []string, plugin bool) error {
	stdin, err := r.stdin()
	if err != nil {
		return err
	}
	t := r.tool
	a, s := &r.answer, &r.system
	a.Collect(t.permit.Secrets.Longest())
	s.Args, s.Environment = t.commandLine(arguments), t.permit.Environment
	s.Stdin, s.OnInput = stdin, r.makeNotes
	s.Stdout, s.Stderr = &a.Stdout, &a.Stderr
	s.Files, s.Random, s.Now = r.view, t.runtime.random, t.runtime.now
	if t.script != nil { // its standard output is not its result
		s.Stdout, s.Devices = &a.Stderr, r.devices()
	}
	if plugin {
		s.Stdout, s.Stdin = &a.Stderr, nil
		a.Plugin = r.newPlugin(stdin)
	}
	return nil
}

func (r *run) stdin() ([]byte, error) {
	switch stdin := r.tool.manifest.Module.Stdin; stdin.Mode {
	case modules.StdinNone:
		return nil, nil
	case modules.StdinParam:
		value, ok := r.invocation.Arguments.Get(stdin.Param)
		if !ok {
			return nil, nil
		}
		var text string
		if json.Unmarshal(value, &text) == nil {
			return []byte(text), nil
		}
		return value, nil
	default:
		return r.invocation.Arguments.MarshalJSON()
	}
}

// devices returns the files through which a script returns its result and calls host functions.
func (r *run) devices() *wasi.Devices {
	request, body := r.host.session.MaxInvocation()
	return &wasi.Devices{Folder: script.Folder, Result: &r.answer.Stdout, MaxRequest: request, MaxBody: body,
		Begin: abi.Begin, Invoke: abi.Invoke}
}

// under returns the tool under the profile that the arguments name, or the tool itself if they name none.
func (t *Tool) under(arguments tool.Arguments) (*Tool, error) {
	value, given := arguments.Get(t.manifest.Behavior.Profile)
	if !given {
		return t, nil
	}
	var name string
	if err := json.Unmarshal(value, &name); err != nil || t.profiles[name] == nil {
		return nil, fmt.Errorf("%s: there is no profile %s; there are %s", t.manifest.Behavior.Profile,
			tool.Shown(string(value), maxShown),
			strings.Join(slices.Sorted(maps.Keys(t.profiles)), ", "))
	}
	return t.profiles[name], nil
}

// Invoke runs one call in a pristine instance. Outcome.Result is always set. The error is nil
// if the tool ended normally, even if it reported a failure. Otherwise the error is a
// [*tool.Error], and Outcome.Result has the same kind and message.
//
// The arguments must match the manifest's schema and include its context values. The timeout
// in the tool's limits begins once the module is compiled and the call has a slot to run in. A
// client-run tool refuses all calls with the kind [tool.Denied].
func (t *Tool) Invoke(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	if invocation.Replay != nil {
		return t.replay(ctx, invocation)
	}
	if t.profiles != nil {
		under, err := t.under(invocation.Arguments)
		if err != nil {
			return t.newRun(invocation).answer.Fail(tool.InvalidArguments, err.Error(), err)
		}
		t = under
	}
	outcome, err := t.newRun(invocation).do(ctx)
	for _, d := range outcome.Denials {
		t.runtime.logger.WarnContext(ctx, "denied", "call_id", invocation.CallID, "tool", t.manifest.Name,
			"permission", d.Permission, "value", d.Value, "rule", d.Rule)
	}
	if err == nil {
		return outcome, nil
	}
	if failure, ok := errors.AsType[*tool.Error](err); ok && failure.Kind == tool.Internal {
		t.runtime.logger.ErrorContext(ctx, "call failed", "call_id", invocation.CallID, "tool", t.manifest.Name, "err",
			failure.Err)
	}
	return outcome, err
}
