package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/caisson-run/caisson/hostfuncs/secrets"
	"github.com/caisson-run/caisson/internal/check"
	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/internal/view"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// message is a line about a problem and lines with hints. They start in lower case and end without a period.
type message struct {
	text  string
	hints []string
}

type failure struct {
	code     int
	messages []message // none if the output says everything
}

// Error returns the messages without their hints.
func (f *failure) Error() string {
	texts := make([]string, len(f.messages))
	for i, m := range f.messages {
		texts[i] = m.text
	}
	return strings.Join(texts, "\n")
}

func failed(code int, text string, hints ...string) *failure {
	return &failure{code, []message{{text, hints}}}
}

func (f *failure) withHints(hints ...string) *failure {
	m := &f.messages[len(f.messages)-1]
	m.hints = append(m.hints, hints...)
	return f
}

// failedEach returns a failure of usage with a message for each problem, all with the same hints.
func failedEach(problems []string, hints ...string) *failure {
	f := &failure{code: exitUsage}
	for _, problem := range problems {
		f.messages = append(f.messages, message{problem, hints})
	}
	return f
}

func report(ctx context.Context, env environment, err error, quiet bool) int {
	if err == nil {
		return exitSuccess
	}
	var known *failure
	switch {
	case errors.As(err, &known):
	case ctx.Err() != nil:
		known = failed(exitInterrupted, "interrupted")
	default:
		known = &failure{exitFailed, messagesOf(err)}
	}
	for _, m := range known.messages {
		m.print(env.stderr, quiet)
	}
	return known.code
}

// print writes the message. It ignores errors of stderr, since nothing can be done about them.
func (m message) print(w io.Writer, quiet bool) {
	_, _ = fmt.Fprintf(w, "caisson: error: %s\n", terminal.EscapeLine(m.text))
	if quiet {
		return
	}
	for i, hint := range m.hints {
		if !slices.Contains(m.hints[:i], hint) {
			printHint(w, hint)
		}
	}
}

// hint prints lines about what to do, unless the command is quiet.
func (o *options) hint(lines ...string) {
	for _, line := range lines {
		if !o.quiet {
			printHint(o.stderr, line)
		}
	}
}

func printHint(w io.Writer, hint string) {
	_, _ = fmt.Fprintf(w, "caisson: hint: %s\n", terminal.EscapeLine(hint))
}

func messagesOf(err error) []message {
	var messages []message
	known := map[string]bool{}
	for _, leaf := range check.Leaves(err) {
		if m, ok := grantMessage(leaf); ok {
			if !known[m.text] {
				messages = append(messages, m)
			}
			known[m.text] = true
			continue
		}
		var invalid *manifests.Error
		if !errors.As(leaf, &invalid) {
			m := messageFor(leaf)
			if errors.Is(leaf, registry.ErrDuplicate) {
				m.hints = append(m.hints, check.FixDuplicate)
			}
			messages = append(messages, m)
			continue
		}
		for _, p := range invalid.Problems {
			hints := []string{p.Fix}
			if p.Kind == mistake.OtherDocument && p.Path == "schema" {
				hints = append(hints, "name a policy with --config FILE, and a manifest or a folder of tools with --tools SOURCE")
			}
			messages = append(messages, message{view.Place(p) + p.Message, hints})
		}
	}
	return messages
}

// grantMessage returns the message for a grant that cannot be given, which each tool that it is for has.
func grantMessage(err error) (message, bool) {
	failure, ok := errors.AsType[*runtime.Error](err)
	if !ok || !errors.Is(failure, runtime.ErrGrant) {
		return message{}, false
	}
	fix := "correct the grant"
	switch {
	case errors.Is(err, secrets.ErrSource):
		fix = "make the file with the secret, or correct its path in the grant"
	case errors.Is(err, fs.ErrNotExist):
		fix = "make the directory, or correct the path of the grant"
	}
	return message{failure.Err.Error(), []string{fix}}, true
}

func messageFor(err error) message {
	if text, fix, ok := check.Advice(err); ok {
		return message{text, []string{fix}}
	}
	inPath, isPath := errors.AsType[*fs.PathError](err)
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return message{err.Error(), []string{spaceHint}}
	case isPath && (errors.Is(err, registry.ErrSource) || errors.Is(err, registry.ErrUnread) ||
		errors.Is(err, manifests.ErrFile)):
		return message{fmt.Sprintf("cannot read %s: %v", inPath.Path, inPath.Err),
			[]string{"name a manifest or a folder that the user who runs this command can read"}}
	}
	return message{text: check.Text(err)}
}

const spaceHint = "free space there, or name a folder elsewhere with --cache-dir DIR"

// Exit codes, as listed in the help of the root command.
const (
	exitSuccess     = 0
	exitFailed      = 1
	exitUsage       = 2
	exitDenied      = 3
	exitLimit       = 4
	exitWaits       = 5
	exitInterrupted = 130 // 128 + SIGINT, as shells report it
)

// exitCode returns the exit code of a call that ended with the kind, and false for an unknown kind.
func exitCode(kind tool.Kind) (code int, known bool) {
	code, known = map[tool.Kind]int{
		"": exitSuccess, tool.ToolFailed: exitFailed, tool.Trap: exitFailed, tool.Internal: exitFailed,
		tool.UnknownTool: exitUsage, tool.InvalidArguments: exitUsage, tool.Denied: exitDenied,
		tool.Deadline: exitLimit, tool.Memory: exitLimit, tool.Fuel: exitLimit, tool.Output: exitLimit,
		tool.Busy: exitLimit, tool.UnknownOutcome: exitLimit, tool.Cancelled: exitInterrupted,
	}[kind]
	if !known {
		code = exitFailed
	}
	return code, known
}
