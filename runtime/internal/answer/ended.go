package answer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/extism"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/tool"
)

// Outcome returns the outcome of a call whose guest has ended, with an error of the engine or of a host function if it
// did not simply return. The contexts are the guest's and the caller's.
func (a *Answer) Outcome(ctx, caller context.Context, used engine.Usage, ended error) (tool.Outcome, error) {
	give, ended := a.takeReader(ctx, ended)
	defer give()
	return a.finish(ctx, caller, used, a.mask(ctx, ended))
}

func (a *Answer) finish(ctx, caller context.Context, used engine.Usage, err error) (tool.Outcome, error) {
	if err == nil {
		return a.report(ctx, caller, 0)
	}
	if ended, ok := errors.AsType[*extism.Error](err); ok {
		return a.endedBy(used, ended)
	}
	var exit *wasi.ExitError
	var overflow *wasi.OutputError
	var failure *engine.Error
	limits := a.Limits
	if errors.Is(err, engine.ErrTrap) && errors.As(err, &failure) {
		a.trace = failure.Trace
	}
	switch {
	case errors.As(err, &exit):
		if a.isFailure(exit.Code) && used.MemoryRefused > 0 && !a.reported(ctx) {
			if _, denied := a.cause(lastLine(a.lastWords(maxReason))); !denied {
				return a.outOfMemory(used)
			}
		}
		return a.report(ctx, caller, exit.Code)
	case errors.As(err, &overflow):
		return a.Fail(tool.Output, fmt.Sprintf("the tool wrote more than %s of output", limits.Output), nil)
	case errors.Is(err, engine.ErrFuel):
		if a.CallersFuel {
			return a.Fail(tool.Fuel,
				fmt.Sprintf("the tool used up the %d instructions of fuel that its caller had left", a.Fuel), nil)
		}
		return a.Fail(tool.Fuel, fmt.Sprintf("the tool used up its fuel of %d instructions", limits.Fuel), nil)
	case errors.Is(err, engine.ErrMemory):
		return a.outOfMemory(used)
	case errors.Is(err, engine.ErrTrap):
		words := a.quote("the tool crashed: "+failure.Reason, a.lastWords(maxWords))
		if denial, denied := a.cause(lastLine(a.lastWords(maxReason))); denied {
			return a.deniedBy(tool.Result{Error: words}, denial)
		}
		if used.MemoryRefused > 0 {
			return a.outOfMemory(used)
		}
		return a.Fail(tool.Trap, words, err)
	}
	return a.Failed(caller, err)
}

// reported reports whether the program printed a result object. If it did not, and had been refused memory, it failed
// for lack of memory.
func (a *Answer) reported(ctx context.Context) bool {
	_, err := readObject(ctx, a.Stdout.Bytes)
	return err == nil
}

func (a *Answer) outOfMemory(used engine.Usage) (tool.Outcome, error) {
	return a.Fail(tool.Memory, fmt.Sprintf("the tool needs more memory than its limit of %s (it asked for %s)",
		a.Limits.Memory, manifests.Bytes(used.MemoryRefused)), nil)
}

// report returns the tool's own result. If the tool failed, its own words come first. The call is denied only if a
// denial explains why it failed.
func (a *Answer) report(ctx, caller context.Context, code uint32) (tool.Outcome, error) {
	said, err := a.read(ctx, code)
	if err != nil {
		return a.Failed(caller, err)
	}
	if said.Success {
		return a.outcome(said.Result), nil
	}
	if !said.ours {
		if denial, denied := a.cause(said.reason); denied {
			return a.deniedBy(said.Result, denial)
		}
	}
	said.Kind = tool.ToolFailed
	return a.outcome(said.Result), nil
}

// quote adds the tool's last words to a message, which models read, unless the manifest keeps them
// private.
func (a *Answer) quote(message, words string) string {
	switch {
	case words == "", a.Manifest.Module.Stderr == modules.StderrPrivate:
		return message
	case message == "":
		return words
	case strings.Contains(words, "\n"):
		return message + ":\n" + words
	}
	return message + ": " + words
}

// endedBy returns the outcome of a call of a plug-in that an error of the kernel's host functions has
// ended.
func (a *Answer) endedBy(used engine.Usage, ended *extism.Error) (tool.Outcome, error) {
	masked, kind, words := a.maskText, tool.ToolFailed, "the tool failed: "
	switch {
	case ended.Denial != nil:
		denial := *ended.Denial
		denial.Value, denial.Rule = masked(denial.Value), masked(denial.Rule)
		return a.Deny(denial)
	case (ended.NoRoom || ended.Fault) &&
		used.MemoryRefused > 0: // a fault, if it continued with the offset 0 that alloc returns then
		return a.outOfMemory(used)
	case ended.Fault:
		kind, words = tool.Trap, "the tool crashed: "
	}
	return a.Fail(kind, a.quote(words+masked(ended.Message), a.lastWords(maxWords)), nil)
}
