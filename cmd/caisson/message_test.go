package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

func TestMessagesOf(t *testing.T) {
	invalid := &manifests.Error{Problems: []manifests.Problem{
		{File: "a.yaml", Line: 1, Column: 2, Path: "name", Message: "is wrong", Fix: "make it right"},
		{File: "a.yaml", Line: 3, Column: 4, Message: "is empty", Fix: "fill it"},
	}}
	unread := &registry.Error{Op: "scan", Name: "b.yaml", Err: fmt.Errorf("%w: %w", registry.ErrSource, errors.New("it is a pipe"))}
	two := []message{{"a.yaml:1:2: name: is wrong", []string{"make it right"}}, {"a.yaml:3:4: is empty", []string{"fill it"}}}
	scan := message{text: "registry: scan b.yaml: invalid source: it is a pipe"}
	for name, test := range map[string]struct {
		err  error
		want []message
	}{
		"a plain error":              {errors.New("no"), []message{{text: "no"}}},
		"a wrapped error":            {fmt.Errorf("open: %w", errors.New("no")), []message{{text: "open: no"}}},
		"two wrapped errors":         {fmt.Errorf("%w: %w", errors.New("a"), errors.New("b")), []message{{text: "a: b"}}},
		"problems":                   {invalid, two},
		"wrapped problems":           {fmt.Errorf("greet: %w", fmt.Errorf("runtime: %w", invalid)), two},
		"a join":                     {errors.Join(errors.New("a"), errors.New("b")), []message{{text: "a"}, {text: "b"}}},
		"a wrapped join":             {fmt.Errorf("all: %w", errors.Join(errors.New("a"), errors.New("b"))), []message{{text: "a"}, {text: "b"}}},
		"what a registry reports":    {&registry.Error{Op: "load", Name: "x", Err: errors.Join(invalid, unread)}, append(append([]message{}, two...), scan)},
		"one thing a registry finds": {&registry.Error{Op: "load", Name: "x", Err: unread}, []message{scan}},
	} {
		assert.Equal(t, test.want, messagesOf(test.err), name)
	}
}

func TestReport(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	both := &failure{exitDenied, []message{{"no\x1b[m", []string{"try", "try", "again\nnow"}}, {"never", nil}}}
	for name, test := range map[string]struct {
		ctx   context.Context
		err   error
		quiet bool
		code  int
		want  string
	}{
		"success":        {t.Context(), nil, false, 0, ""},
		"all is said":    {t.Context(), &failure{code: exitUsage}, false, 2, ""},
		"a failure":      {t.Context(), fmt.Errorf("wrapped: %w", both), false, 3, "caisson: error: no\\x1b[m\ncaisson: hint: try\ncaisson: hint: again\\nnow\ncaisson: error: never\n"},
		"quiet":          {t.Context(), both, true, 3, "caisson: error: no\\x1b[m\ncaisson: error: never\n"},
		"another error":  {t.Context(), errors.New("disk full"), false, 1, "caisson: error: disk full\n"},
		"an interrupted": {cancelled, context.Canceled, false, 130, "caisson: error: interrupted\n"},
	} {
		var stderr bytes.Buffer
		assert.Equal(t, test.code, report(test.ctx, environment{stderr: &stderr}, test.err, test.quiet), name)
		assert.Equal(t, test.want, stderr.String(), name)
	}
}

func TestEveryKindHasAnExitCode(t *testing.T) {
	wanted := map[tool.Kind]int{
		"": 0, tool.ToolFailed: 1, tool.Trap: 1, tool.Internal: 1,
		tool.UnknownTool: 2, tool.InvalidArguments: 2, tool.Denied: 3,
		tool.Deadline: 4, tool.Memory: 4, tool.Fuel: 4, tool.Output: 4, tool.Busy: 4,
		tool.UnknownOutcome: 4, tool.Cancelled: 130,
	}
	for _, kind := range append(tool.Kinds(), "") {
		code, known := exitCode(kind)
		assert.True(t, known, "%q has no exit code", kind)
		assert.Equal(t, wanted[kind], code, "%q", kind)
		assert.Contains(t, rootHelp, fmt.Sprintf("\n  %-4d", code), "the help names the code of %q", kind)
	}
	for _, code := range []int{exitSuccess, exitWaits} {
		assert.Contains(t, rootHelp, fmt.Sprintf("\n  %-4d", code))
	}
	code, known := exitCode("made_up")
	assert.False(t, known)
	assert.Equal(t, exitFailed, code)
}
