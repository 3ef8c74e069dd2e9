// Package answer makes the outcome of a call from its guest's end and output, which may be a result object, plain
// output or a plug-in's output. It masks secrets and cuts long texts. Only the host decides the kind of a failure.
package answer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/caisson-run/caisson/hostfuncs/secrets"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/extism"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/tool"
)

// Answer holds the output of the guest of one call, and the host's observations of it. Its methods may be called by one
// goroutine at a time.
type Answer struct {
	Tool, CallID string // as the caller named them
	Manifest     *manifests.Manifest
	Limits       manifests.Limits
	// Readers holds an element for each call whose long output is being read. Its capacity bounds how many there are.
	Readers chan struct{}

	Began          bool // the guest has begun
	Unread         bool // the guest did not read its input
	Stdout, Stderr wasi.Output
	Plugin         *extism.Session // of a call of an Extism plug-in; else nil
	Returned       uint64          // by the plug-in's function: an int64
	Fuel           int64           // the guest's fuel limit; zero if there is none
	CallersFuel    bool            // Fuel is the caller's remaining fuel
	Secrets        *secrets.Set    // to mask; nil for a guest without host functions, which has met none
	Usage          tool.Usage
	Denials        []tool.Denial
	HostCalls      []tool.HostCall

	log       guestLog // the part of Stderr that is shown
	leftOut   string   // the parts of the output that the result lacks
	illFormed int      // bytes of the output that are not UTF-8
	trace     string   // of a trap
}

// Collect prepares the outputs in which the guest's are collected, where longest is the length of the tool's longest
// secret.
func (a *Answer) Collect(longest int) {
	a.Stdout = wasi.Output{Limit: int64(a.Limits.Output), Strict: true}
	a.Stderr = a.newLog(longest)
}

// Failed classifies an error that the guest did not cause. The context is the caller's.
func (a *Answer) Failed(ctx context.Context, err error) (tool.Outcome, error) {
	switch {
	case errors.Is(err, context.DeadlineExceeded) && isOver(ctx):
		return a.Fail(tool.Deadline, "the tool did not finish before the caller's deadline", err)
	case errors.Is(err, context.DeadlineExceeded):
		return a.Fail(tool.Deadline, fmt.Sprintf("the tool did not finish before its deadline of %s", a.Limits.Timeout), err)
	case errors.Is(err, context.Canceled):
		return a.Fail(tool.Cancelled, "the call was cancelled", err)
	}
	return a.Fail(tool.Internal, "internal error (id "+a.CallID+")", err)
}

// isOver reports whether the context has ended or its deadline has passed.
func isOver(ctx context.Context) bool {
	at, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(at)
}

// Fail returns the outcome of a call that failed for a reason of the host.
func (a *Answer) Fail(kind tool.Kind, message string, cause error) (tool.Outcome, error) {
	return a.outcome(tool.Result{Error: message, Kind: kind}),
		&tool.Error{Op: "invoke", Tool: a.Tool, Kind: kind, Message: message, Err: cause}
}

func (a *Answer) outcome(result tool.Result) tool.Outcome {
	outcome := tool.Outcome{Result: result, Usage: a.Usage, Denials: a.Denials, HostCalls: a.HostCalls}
	if a.Began {
		outcome.Log = a.shown()
	}
	return outcome
}

// deniedBy returns the outcome of a call that failed because of a denial, which is then the last of
// its denials.
func (a *Answer) deniedBy(result tool.Result, denial tool.Denial) (tool.Outcome, error) {
	same := func(d tool.Denial) bool {
		return d.Value == denial.Value && d.Rule == denial.Rule && d.Permission == denial.Permission
	}
	denial.Note = false
	a.Denials = append(slices.DeleteFunc(slices.Clone(a.Denials), same), denial)
	message := fmt.Sprintf("denied: %s %s: %s", denial.Permission, plain(denial.Value), denial.Rule)
	// The host's words come first, so that the tool's cannot pass for them.
	if words := result.Error; !repeats(words, message, denial.Value) {
		if !strings.HasPrefix(words, "the tool") {
			words = theToolSays + words
		}
		message += "; " + words
	}
	result.Success, result.Kind, result.Error = false, tool.Denied, message
	return a.outcome(result), &tool.Error{Op: "invoke", Tool: a.Tool, Kind: tool.Denied, Message: message}
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

// Deny returns the outcome of a call that was denied before its guest had written anything.
func (a *Answer) Deny(denial tool.Denial) (tool.Outcome, error) {
	return a.deniedBy(tool.Result{}, denial)
}
