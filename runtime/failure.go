package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/tool"
)

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
		if r.isFailure(exit.Code) && used.MemoryRefused > 0 && !r.reported() {
			if _, denied := r.cause(r.lastWords(), ""); !denied {
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
		words := r.lastWords()
		if denial, denied := r.cause(words, ""); denied {
			return r.deniedBy(tool.Result{Error: r.quote("", words)}, denial)
		}
		if used.MemoryRefused > 0 {
			return r.outOfMemory(used)
		}
		return r.fail(tool.Trap, r.quote("the tool crashed: "+failure.Reason, words), err)
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

// report returns the tool's own result. Of a failure, the tool's own words come first. The call is
// denied only if a denial explains why it failed.
func (r *run) report(ctx context.Context, code uint32) (tool.Outcome, error) {
	result, words, err := r.read(code)
	if err != nil {
		return r.failed(ctx, err)
	}
	if result.Success {
		return r.outcome(result), nil
	}
	if words == "" {
		words = r.lastWords()
		result.Error = r.quote(result.Error, words)
	}
	if denial, denied := r.cause(words, result.Output); denied {
		return r.deniedBy(result, denial)
	}
	result.Kind = tool.ToolFailed
	return r.outcome(result), nil
}

// cause returns the denial that explains why the tool failed, if one does: the last one that the
// tool's words or output name. If the tool says only that something was not permitted, it is the last
// of all; if it says nothing, the last that is not a note.
func (r *run) cause(words, output string) (tool.Denial, bool) {
	if len(words) > maxReason { // what it takes to look for each name must not depend on the guest
		words = words[:maxReason]
	}
	said, untold := words+"\n"+lastOf(output), strings.Contains(words, notPermitted)
	for _, d := range slices.Backward(r.denials) {
		if slices.ContainsFunc(r.namesOf(d), func(name string) bool { return mentions(said, name) }) {
			return d, true
		}
	}
	for _, d := range slices.Backward(r.denials) {
		if untold || words == "" && !d.Note {
			return d, true
		}
	}
	return tool.Denial{}, false
}

// maxReason is in how many bytes of a tool's reason names are looked for.
const maxReason = 8 << 10

// notPermitted is in what guests' languages make of the error number of a denial, EPERM.
const notPermitted = "not permitted"

// namesOf returns what a tool may call what it was denied: a path also relative to "/", to its own
// directory or to one that the manifest requests, and a URL also by its host.
func (r *run) namesOf(d tool.Denial) []string {
	names := []string{d.Value}
	switch permission.Kind(d.Permission) {
	case filesKind:
		directories := []string{"/", path.Dir(d.Value) + "/"}
		for _, request := range r.tool.manifest.Permissions.Files {
			directories = append(directories, strings.TrimSuffix(request.Path, "/")+"/")
		}
		for _, directory := range directories {
			relative, inside := strings.CutPrefix(d.Value, directory)
			if inside && strings.ContainsAny(relative, "./") { // else it may be any word
				names = append(names, relative)
			}
		}
	case "network":
		if u, err := url.Parse(d.Value); err == nil && u.Hostname() != "" {
			names = append(names, u.Hostname())
		}
	}
	return names
}

// mentions reports whether a text has a name in it that is no part of a longer one.
func mentions(text, name string) bool {
	for at := 0; name != ""; at++ {
		n := strings.Index(text[at:], name)
		if n < 0 {
			return false
		}
		at += n
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+len(name):])
		if !partOfName(before) && !partOfName(after) {
			return true
		}
	}
	return false
}

func partOfName(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// maxWords is how many bytes of a tool's log go with a failure for which the tool gave no reason.
const maxWords = 2 << 10

// lastWords returns the end of the tool's log, with secrets masked.
func (r *run) lastWords() string {
	if bytes.Equal(r.stderr.Bytes, []byte(unmaskedLog)) {
		return ""
	}
	words := lastOf(string(r.stderr.Bytes))
	if words != "" && r.stderr.Dropped {
		words += " …"
	}
	return words
}

// lastOf returns the last [maxWords] bytes of a text, from the beginning of a line if there is one.
func lastOf(text string) string {
	text = strings.TrimSpace(text)
	if len(text) > maxWords {
		text = text[len(text)-maxWords:]
		if _, lines, found := strings.Cut(text, "\n"); found {
			text = lines
		}
		text = "… " + text
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// quote adds the tool's last words to a message, which models read, unless the manifest keeps them
// private.
func (r *run) quote(message, words string) string {
	switch {
	case words == "", r.tool.manifest.Module.Stderr == manifests.StderrPrivate:
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
	message := fmt.Sprintf("denied: %s %s: %s", denial.Permission, denial.Value, denial.Rule)
	switch {
	case strings.Contains(result.Error, message):
		message = result.Error
	case result.Error != "":
		message = result.Error + "; " + message
	}
	result.Success, result.Kind, result.Error = false, tool.Denied, message
	return r.outcome(result), &tool.Error{Op: "invoke", Tool: r.invocation.Tool, Kind: tool.Denied, Message: message}
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
		err = unusable(r.tool.manifest, nil, err)
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
