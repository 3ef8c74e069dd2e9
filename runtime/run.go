package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/abi"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/tool"
)

// run is one call under way.
type run struct {
	tool       *Tool
	invocation tool.Invocation
	system     wasi.System
	stdout     wasi.Output
	stderr     wasi.Output
	began      bool // the guest has begun
	usage      tool.Usage
	denials    []tool.Denial
	harmless   int // how many denials, from the first, cannot be why the call failed
	hostCalls  []tool.HostCall
	trace      string // of a trap

	fuel        int64 // the guest's fuel limit; zero for none
	callersFuel bool  // fuel is what the caller has left

	host     *host     // the guest's
	deadline *deadline // the guest's, once it has begun
	seat     *seat     // in which the call runs; nil if no tool made the call
	turn     *turn     // in the seat
	guest    guest
}

func (r *run) do(ctx context.Context) (tool.Outcome, error) {
	t := r.tool
	if reason := t.Unavailable(); reason != "" {
		return r.fail(tool.Denied, "the tool is unavailable: "+reason, nil)
	}
	if t.isClients() {
		return r.deny(tool.Denial{Permission: "execution", Value: t.manifest.Name, Rule: "the client runs this tool; the runtime cannot run its calls"})
	}
	module, err := t.prepared(ctx)
	if err != nil {
		return r.failed(ctx, err)
	}
	if t.runtime.watchdog.hasCondemned(module.Digest()) { // the digest may not have been known before
		return r.fail(tool.Denied, "the tool is unavailable: "+condemned, nil)
	}
	for _, name := range t.manifest.Context {
		if !t.permit.context[name] {
			return r.deny(tool.Denial{Permission: "context", Value: name, Rule: "no grant lets this tool have it", Allow: contextAllow(t.manifest.Name, name)})
		}
	}
	arguments, err := manifests.ExpandArgs(t.manifest.Module.Args, r.invocation.Arguments)
	if err != nil {
		return r.fail(tool.InvalidArguments, err.Error(), err)
	}
	inside, leave, err := r.enter(ctx)
	if err != nil {
		return r.failed(ctx, err)
	}
	defer leave()
	return r.runInside(inside, module, arguments)
}

// enter admits the call and returns the context to run it in. A call in a seat waits for its turn.
// The caller must call leave.
func (r *run) enter(ctx context.Context) (inside context.Context, leave func(), err error) {
	gate := r.tool.runtime.gate
	if r.seat = seatOf(ctx); r.seat == nil {
		return ctx, gate.leave, gate.enter()
	}
	if inside, r.turn, err = r.seat.take(ctx); err != nil {
		return nil, nil, err
	}
	if r.seat.holds(r.tool.runtime) {
		return inside, r.turn.give, nil
	}
	// A call in a slot of another runtime is not refused here: it would fail after its guest had
	// begun. The other runtime's slots still bound how many such calls there are.
	gate.enterNow()
	return inside, func() {
		gate.leave()
		r.turn.give()
	}, nil
}

// runInside runs the call after enter has admitted it.
func (r *run) runInside(ctx context.Context, module *engine.Module, arguments []string) (tool.Outcome, error) {
	t := r.tool
	view, err := t.runtime.files.Open(ctx, t.permit.mounts, r.invocation.Context, files.Limits{Tool: t.manifest.Name, OpenFiles: t.limits.OpenFiles, AddedBytes: t.limits.DiskBytes})
	if err != nil {
		return r.notOpened(ctx, err)
	}
	defer view.Close()
	if err := r.prepare(arguments, view); err != nil {
		return r.failed(ctx, err)
	}
	r.host = r.newHost()
	defer r.host.close()
	return r.execute(ctx, module, view)
}

// notOpened returns the outcome of a call whose directories could not be opened.
func (r *run) notOpened(ctx context.Context, err error) (tool.Outcome, error) {
	var refused *files.Error
	switch {
	case !errors.As(err, &refused):
		return r.failed(ctx, err)
	case refused.Denial != nil:
		return r.deny(*refused.Denial)
	case errors.Is(err, files.ErrNotExist):
		return r.deny(tool.Denial{Permission: "files", Value: refused.Path, Rule: "the directory granted for it does not exist"})
	}
	return r.failed(ctx, err)
}

func (r *run) execute(ctx context.Context, module *engine.Module, view *files.View) (tool.Outcome, error) {
	t := r.tool
	if r.fuel, r.callersFuel = r.seat.fuel(t.limits.Fuel); r.callersFuel && r.fuel == 0 {
		return r.fail(tool.Fuel, "the tool that made the call has no fuel left", nil)
	}
	r.began = true
	defer func() { r.deadline.release() }()
	used, err := r.runOnce(ctx, module)
	for errors.Is(err, engine.ErrEvicted) { // evicted since it was prepared
		r.deadline.release()
		if module, err = t.prepared(ctx); err != nil {
			return r.failed(ctx, err)
		}
		used, err = r.runOnce(ctx, module)
	}
	if errors.Is(err, ErrRunaway) {
		return r.late()
	}
	r.seat.charge(used)
	fuel := used.Fuel // a copy, so that the record does not keep all of used alive
	r.usage = tool.Usage{Fuel: &fuel, MemoryBytes: used.MemoryBytes, Wall: t.runtime.now().Sub(r.system.Started)}
	r.collect(view)
	r.tellWithheld(ctx)
	give, err := r.takeReader(err)
	defer give()
	return r.finish(ctx, used, r.mask(err))
}

// runOnce starts the guest's deadline and runs the guest. It fails with ErrRunaway if the guest was
// abandoned in the meantime.
func (r *run) runOnce(ctx context.Context, module *engine.Module) (used engine.Usage, err error) {
	t, g := r.tool, &r.guest
	r.system.Started = t.runtime.now()
	r.deadline = newDeadline(ctx, r.system.Started.Add(t.limits.Timeout))
	g.run, g.tool, g.module, g.ctx, g.began, g.deadline = r, t, module, ctx, r.system.Started, r.deadline.at
	t.runtime.watchdog.enter(g)
	defer func() {
		if t.runtime.watchdog.leave(g) {
			err = ErrRunaway
		}
	}()
	return t.runIn(r.host.open(abi.With(r.deadline, &r.host.session), t), &r.system, module, engine.Run{Fuel: r.fuel, Watched: &g.Watched})
}

// prepare sets up the guest's WASI system.
func (r *run) prepare(arguments []string, view *files.View) error {
	stdin, err := r.stdin()
	if err != nil {
		return err
	}
	t := r.tool
	r.stdout = wasi.Output{Limit: int64(t.limits.Output), Strict: true}
	r.stderr = wasi.Output{Limit: int64(t.limits.Stderr)}
	r.system = wasi.System{
		Args:        append([]string{t.manifest.Name}, arguments...),
		Environment: t.permit.environment,
		Stdin:       stdin,
		Stdout:      &r.stdout,
		Stderr:      &r.stderr,
		Files:       view,
		Random:      t.runtime.random,
		Now:         t.runtime.now,
	}
	return nil
}

func (r *run) stdin() ([]byte, error) {
	switch stdin := r.tool.manifest.Module.Stdin; stdin.Mode {
	case manifests.StdinNone:
		return nil, nil
	case manifests.StdinParam:
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

// finish returns the outcome of the call, given how the guest ended.
func (r *run) finish(ctx context.Context, used engine.Usage, err error) (tool.Outcome, error) {
	if err == nil {
		return r.report(ctx, 0)
	}
	var exit *wasi.ExitError
	var overflow *wasi.OutputError
	var failure *engine.Error
	limits := r.tool.limits
	if errors.Is(err, engine.ErrTrap) && errors.As(err, &failure) {
		r.trace = failure.Trace
	}
	switch {
	case errors.As(err, &exit):
		if exit.Code != 0 && used.MemoryRefused > 0 && !r.refused() && !r.reported() {
			return r.outOfMemory(used)
		}
		return r.report(ctx, exit.Code)
	case errors.As(err, &overflow):
		return r.fail(tool.Output, fmt.Sprintf("the tool wrote more than %s of output", limits.Output), nil)
	case errors.Is(err, engine.ErrFuel):
		if r.callersFuel {
			return r.fail(tool.Fuel, fmt.Sprintf("the tool used up the %d instructions of fuel that its caller had left", r.fuel), nil)
		}
		return r.fail(tool.Fuel, fmt.Sprintf("the tool used up its fuel of %d instructions", limits.Fuel), nil)
	case errors.Is(err, engine.ErrMemory):
		return r.outOfMemory(used)
	case errors.Is(err, engine.ErrTrap) && r.refused():
		return r.deniedBy(tool.Result{})
	case errors.Is(err, engine.ErrTrap) && used.MemoryRefused > 0:
		return r.outOfMemory(used)
	case errors.Is(err, engine.ErrTrap):
		return r.fail(tool.Trap, "the tool crashed: "+failure.Reason, err)
	}
	return r.failed(ctx, err)
}

// reported reports whether the program printed a result object. If it did not, and had been
// refused memory, that is why it failed.
func (r *run) reported() bool {
	_, err := readResult(r.deadline, r.stdout.Bytes)
	return err == nil
}

func (r *run) outOfMemory(used engine.Usage) (tool.Outcome, error) {
	return r.fail(tool.Memory, fmt.Sprintf("the tool needs more memory than its limit of %s (it asked for %s)",
		r.tool.limits.Memory, manifests.Bytes(used.MemoryRefused)), nil)
}

// report returns the tool's own result. If the tool failed and the host had denied it something,
// the outcome is the denial instead: the tool's error text may say anything, and the operator can
// act on a receipt.
func (r *run) report(ctx context.Context, code uint32) (tool.Outcome, error) {
	result, err := r.read(code)
	if err != nil {
		return r.failed(ctx, err)
	}
	if !result.Success && r.refused() {
		return r.deniedBy(result)
	}
	return r.outcome(result), nil
}

// refused reports whether the guest was denied something that may be why it failed.
func (r *run) refused() bool { return len(r.denials) > r.harmless }

func (r *run) deniedBy(result tool.Result) (tool.Outcome, error) {
	// Interpreters look for optional files before they run the tool's own code, so the last of
	// several denials is the most relevant one.
	last := r.denials[len(r.denials)-1]
	result.Success, result.Kind = false, tool.Denied
	result.Error = fmt.Sprintf("denied: %s %s: %s", last.Permission, last.Value, last.Rule)
	return r.outcome(result), &tool.Error{Op: "invoke", Tool: r.invocation.Tool, Kind: tool.Denied, Message: result.Error}
}

func (r *run) deny(denial tool.Denial) (tool.Outcome, error) {
	r.denials = append(r.denials, denial)
	return r.deniedBy(tool.Result{})
}

// failed classifies an error that the guest did not cause. The context is the caller's.
func (r *run) failed(ctx context.Context, err error) (tool.Outcome, error) {
	switch {
	case errors.Is(err, context.DeadlineExceeded) && isOver(ctx):
		return r.fail(tool.Deadline, "the tool did not finish before the caller's deadline", err)
	case errors.Is(err, context.DeadlineExceeded):
		return r.fail(tool.Deadline, fmt.Sprintf("the tool did not finish before its deadline of %s", r.tool.limits.Timeout), err)
	case errors.Is(err, context.Canceled):
		return r.fail(tool.Cancelled, "the call was cancelled", err)
	case errors.Is(err, engine.ErrModule):
		err = fmt.Errorf("%w: %s: %w", ErrModule, r.tool.manifest.Module.Path, err)
	case errors.Is(err, errBusy):
		return r.fail(tool.Busy, err.Error(), err)
	}
	return r.fail(tool.Internal, "internal error (id "+r.invocation.CallID+")", err)
}

// isOver reports whether the context has ended or its deadline has passed.
func isOver(ctx context.Context) bool {
	at, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(at)
}

func (r *run) fail(kind tool.Kind, message string, cause error) (tool.Outcome, error) {
	return r.outcome(tool.Result{Error: message, Kind: kind}),
		&tool.Error{Op: "invoke", Tool: r.invocation.Tool, Kind: kind, Message: message, Err: cause}
}

func (r *run) outcome(result tool.Result) tool.Outcome {
	outcome := tool.Outcome{Result: result, Usage: r.usage, Denials: r.denials, HostCalls: r.hostCalls}
	if r.began {
		outcome.Log = ownWords.Replace(strings.ToValidUTF8(string(r.stderr.Bytes), "\uFFFD"))
		if r.stderr.Dropped {
			outcome.Log += fmt.Sprintf("\n%s%s]\n", cutMark, r.tool.limits.Stderr)
		}
		if r.trace != "" {
			outcome.Log += "\n" + trapMark + "\n" + strings.ToValidUTF8(r.trace, "\uFFFD")
		}
	}
	return outcome
}

// The markers of text that the host adds to a guest's log.
const (
	cutMark  = "[cut after "
	trapMark = "[trap at]"
)

// ownWords escapes the host's markers in a guest's log, so that a guest cannot forge them.
var ownWords = strings.NewReplacer(cutMark, `\`+cutMark, trapMark, `\`+trapMark)
