package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/extism"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/tool"
)

// finish returns the outcome of the call, given how the guest ended.
func (r *run) finish(ctx context.Context, used engine.Usage, err error) (tool.Outcome, error) {
	if err == nil {
		return r.report(ctx, 0)
	}
	if ended, ok := errors.AsType[*extism.Error](err); ok {
		return r.endedBy(used, ended)
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
		if r.isFailure(exit.Code) && used.MemoryRefused > 0 && !r.reported() {
			if _, denied := r.cause(lastLine(r.lastWords(maxReason))); !denied {
				return r.outOfMemory(used)
			}
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
	case errors.Is(err, engine.ErrTrap):
		words := r.quote("the tool crashed: "+failure.Reason, r.lastWords(maxWords))
		if denial, denied := r.cause(lastLine(r.lastWords(maxReason))); denied {
			return r.deniedBy(tool.Result{Error: words}, denial)
		}
		if used.MemoryRefused > 0 {
			return r.outOfMemory(used)
		}
		return r.fail(tool.Trap, words, err)
	}
	return r.failed(ctx, err)
}

// reported reports whether the program printed a result object. If it did not, and had been
// refused memory, that is why it failed.
func (r *run) reported() bool {
	_, err := readObject(r.deadline, r.stdout.Bytes)
	return err == nil
}

func (r *run) outOfMemory(used engine.Usage) (tool.Outcome, error) {
	return r.fail(tool.Memory, fmt.Sprintf("the tool needs more memory than its limit of %s (it asked for %s)",
		r.tool.limits.Memory, manifests.Bytes(used.MemoryRefused)), nil)
}

// report returns the tool's own result. Of a failure, the tool's own words come first. The call is
// denied only if a denial explains why it failed.
func (r *run) report(ctx context.Context, code uint32) (tool.Outcome, error) {
	said, err := r.read(code)
	if err != nil {
		return r.failed(ctx, err)
	}
	if said.Success {
		return r.outcome(said.Result), nil
	}
	if !said.ours {
		if denial, denied := r.cause(said.reason); denied {
			return r.deniedBy(said.Result, denial)
		}
	}
	said.Kind = tool.ToolFailed
	return r.outcome(said.Result), nil
}

// quote adds the tool's last words to a message, which models read, unless the manifest keeps them
// private.
func (r *run) quote(message, words string) string {
	switch {
	case words == "", r.tool.manifest.Module.Stderr == modules.StderrPrivate:
		return message
	case message == "":
		return words
	case strings.Contains(words, "\n"):
		return message + ":\n" + words
	}
	return message + ": " + words
}

// deniedBy returns the outcome of a call that failed because of a denial, which is then the last of
// its denials.
func (r *run) deniedBy(result tool.Result, denial tool.Denial) (tool.Outcome, error) {
	same := func(d tool.Denial) bool {
		return d.Value == denial.Value && d.Rule == denial.Rule && d.Permission == denial.Permission
	}
	denial.Note = false
	r.denials = append(slices.DeleteFunc(slices.Clone(r.denials), same), denial)
	message := fmt.Sprintf("denied: %s %s: %s", denial.Permission, plain(denial.Value), denial.Rule)
	// The host's words come first, so that the tool's cannot pass for them.
	if words := result.Error; !repeats(words, message, denial.Value) {
		if !strings.HasPrefix(words, "the tool") {
			words = theToolSays + words
		}
		message += "; " + words
	}
	result.Success, result.Kind, result.Error = false, tool.Denied, message
	return r.outcome(result), &tool.Error{Op: "invoke", Tool: r.invocation.Tool, Kind: tool.Denied, Message: message}
}

// repeats reports whether a tool's words say no more than a message about a value, or a part of that such as a URL that
// the host has completed.
func repeats(words, message, value string) bool {
	rest := strings.Trim(strings.Replace(words, message, "", 1), ":; \n")
	return rest == "" || rest != words && strings.Contains(value, rest)
}

// plain returns a guest's value for a message in which the host's words are set off by ": " and "; ".
// A value that has these in it is quoted.
func plain(value string) string {
	if strings.Contains(value, ": ") || strings.Contains(value, "; ") || strings.ContainsFunc(value, unicode.IsControl) {
		return strconv.Quote(value)
	}
	return value
}

func (r *run) deny(denial tool.Denial) (tool.Outcome, error) {
	return r.deniedBy(tool.Result{}, denial)
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
		err = unusable(r.tool.manifest, engine.Source{}, err)
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
		outcome.Log = r.shown()
	}
	return outcome
}
