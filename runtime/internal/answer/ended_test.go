package answer

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/tool"
)

// TestWhatDecidesTheKind: several things can have happened to a guest that failed.
func TestWhatDecidesTheKind(t *testing.T) {
	denial := []tool.Denial{{Permission: "files", Value: "/etc/x.conf", Rule: "no"}}
	probed := []tool.Denial{{Permission: "files", Value: "/pyvenv.cfg", Rule: "no", Note: true}}
	const report = `{"success":false,"error":"no such city; try Oslo"}`
	const blames = `{"success":false,"error":"could not read x.conf","data":1}`
	refused := engine.Usage{MemoryRefused: 1 << 40}
	trap := &engine.Error{Op: "run", Kind: engine.ErrTrap, Reason: "unreachable", Trace: "main.crash()"}
	for _, c := range []struct {
		name    string
		used    engine.Usage
		err     error
		denials []tool.Denial
		stdout  string
		stderr  string
		want    tool.Kind
	}{
		{"exit", engine.Usage{}, &wasi.ExitError{Code: 1}, nil, "", "", tool.ToolFailed},
		{"exit for want of memory", refused, &wasi.ExitError{Code: 1}, nil, "half an outp", "", tool.Memory},
		{"exit with a report", refused, &wasi.ExitError{Code: 1}, nil, report, "", tool.ToolFailed},
		{"exit after a denial", refused, &wasi.ExitError{Code: 1}, denial, "", "", tool.Denied},
		{"report after a denial", engine.Usage{}, nil, denial, report, "", tool.ToolFailed},
		{"report that names what was denied", engine.Usage{}, nil, denial, blames, "", tool.Denied},
		{"report that names part of it", engine.Usage{}, nil, denial, `{"success":false,"error":"max.conf"}`, "", tool.ToolFailed},
		{"report without a reason", engine.Usage{}, nil, denial, `{"success":false}`, "", tool.Denied},
		{"output that names what was denied", engine.Usage{}, &wasi.ExitError{Code: 1}, denial, "open /etc/x.conf", "bye", tool.ToolFailed},
		{"malformed result after a denial", engine.Usage{}, &wasi.ExitError{Code: 1}, denial, `{"success":true`, "", tool.ToolFailed},
		{"words after a denial", engine.Usage{}, &wasi.ExitError{Code: 1}, denial, "", "near selec: syntax error", tool.ToolFailed},
		{"words that name what was denied", engine.Usage{}, &wasi.ExitError{Code: 1}, denial, "", "x: etc/x.conf: not there", tool.Denied},
		{"words that tell of a denial", engine.Usage{}, &wasi.ExitError{Code: 1}, denial, "", "Operation not permitted (os error 63)", tool.Denied},
		{"words that name a probe", engine.Usage{}, &wasi.ExitError{Code: 1}, probed, "", "cannot read pyvenv.cfg", tool.ToolFailed},
		{"words after a probe", engine.Usage{}, &wasi.ExitError{Code: 1}, probed, "", "ValueError: 1", tool.ToolFailed},
		{"nothing after a probe", engine.Usage{}, &wasi.ExitError{Code: 3}, probed, "", "", tool.ToolFailed},
		{"trap with words after a denial", refused, trap, denial, "", "index out of range", tool.Memory},
		{"trap with words", engine.Usage{}, trap, nil, "", "panicked", tool.Trap},
		{"success after a denial", refused, nil, denial, `{"success":true}`, "", ""},
		{"trap", engine.Usage{}, trap, nil, "", "", tool.Trap},
		{"trap for want of memory", refused, trap, nil, "", "", tool.Memory},
		{"trap after a denial", refused, trap, denial, "", "", tool.Denied},
		{"deadline after a denial", refused, context.DeadlineExceeded, denial, "", "", tool.Deadline},
		{"overflow after a denial", refused, &wasi.OutputError{}, denial, "", "", tool.Output},
	} {
		a := &Answer{Manifest: &manifests.Manifest{}, Denials: c.denials, Began: true, Stdout: wasi.Output{Bytes: []byte(c.stdout)}, log: guestLog{text: []byte(c.stderr)}}
		outcome, _ := a.finish(t.Context(), t.Context(), c.used, c.err)
		assert.Equal(t, c.want, outcome.Result.Kind, c.name)
		assert.Len(t, outcome.Denials, len(c.denials), c.name)
		assert.Equal(t, c.err == error(trap), strings.Contains(outcome.Log, "main.crash()"), "%s: authors see where a trap was", c.name)
	}
}

// TestRepeats: the tool's words are left out of a denial if they say no more than it, and only then.
func TestRepeats(t *testing.T) {
	const message, value = "denied: network https://example.com/: no grant covers example.com", "https://example.com/"
	for words, want := range map[string]bool{
		"":                                  true,
		message:                             true,
		value + ": " + message:              true,
		"https://example.com: " + message:   true,
		value:                               false,
		"https://example.com":               false,
		"cannot fetch it: " + message:       false,
		"https://example.org: " + message:   false,
		"https://example.com/a: " + message: false,
	} {
		assert.Equal(t, want, repeats(words, message, value), words)
	}
}
