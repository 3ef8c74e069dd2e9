package answer

import (
	"cmp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/tool"
)

// TestReasonsAreSearchedInPart: a guest that is denied much and gives a long reason keeps the host
// no longer than one with a short reason.
func TestReasonsAreSearchedInPart(t *testing.T) {
	a := &Answer{Manifest: &manifests.Manifest{}, Denials: []tool.Denial{{Permission: "files", Value: "/etc/x.conf", Rule: "no"}}}
	_, denied := a.cause(strings.Repeat("a", maxReason-20) + " /etc/x.conf")
	assert.True(t, denied)
	_, denied = a.cause(strings.Repeat("a", maxReason) + " /etc/x.conf")
	assert.False(t, denied)
}

// TestOnlyReasonsExplain: a call is denied if its tool says so, or says nothing. It is not denied because of an
// optional file that the tool did without, and may mention elsewhere.
func TestOnlyReasonsExplain(t *testing.T) {
	file := tool.Denial{Permission: "files", Value: "/etc/x.conf", Rule: "no"}
	word := tool.Denial{Permission: "files", Value: "/project/list", Rule: "no"}
	note := tool.Denial{Permission: "files", Value: "/pyvenv.cfg", Rule: "no", Note: true}
	call := tool.Denial{Permission: "tools", Value: "early", Rule: "no"}
	host := tool.Denial{Permission: "network", Value: "https://a.example/x", Rule: "no"}
	exit := &wasi.ExitError{Code: 1}
	for _, c := range []struct {
		name              string
		denial            tool.Denial
		mode, stdout, log string
		err               error
		want              tool.Kind
	}{
		{"the reason is on standard output", file, "", "no such city; try Oslo", "", exit, tool.ToolFailed},
		{"only the output names the file", file, "", "config /etc/x.conf skipped", "no such city", exit, tool.ToolFailed},
		{"only the output of an object names it", file, "", `{"success":false,"output":"tried x.conf","error":"no such city"}`, "", nil, tool.ToolFailed},
		{"an earlier line of the log tells of it", file, "", "", "config: Operation not permitted\nno such city; try Oslo\n", exit, tool.ToolFailed},
		{"an earlier line of the log names it", file, "", "", "/etc/x.conf: not there\nno such city; try Oslo\n", exit, tool.ToolFailed},
		{"a sentence with the system's words", file, "", "", "smoking is not permitted in Oslo", exit, tool.ToolFailed},
		{"such a sentence at the end", file, "", "", "we say that smoking is an operation not permitted", exit, tool.ToolFailed},
		{"the output is not JSON", file, "json", "garbage", "", nil, tool.ToolFailed},
		{"the data does not fit", file, "schema", `{"success":true,"data":1}`, "", nil, tool.ToolFailed},
		{"a probe before the input", note, "", "", "pyvenv.cfg: Operation not permitted", exit, tool.ToolFailed},
		{"a name that is a word", call, "", "", "early bird not found", exit, tool.ToolFailed},
		{"a name in a longer one", call, "", "", "tool early_bird not found", exit, tool.ToolFailed},
		{"a file whose name is a word", word, "", "", "the list has no such city", exit, tool.ToolFailed},
		{"a file named as a city", tool.Denial{Permission: "files", Value: "/cache/Oslo"}, "", "", "no weather report for Oslo today", exit, tool.ToolFailed},
		{"a file named as a number", tool.Denial{Permission: "files", Value: "/tmp/1"}, "", "", "expected 1 argument", exit, tool.ToolFailed},
		{"a file named as a word before a colon", tool.Denial{Permission: "files", Value: "/etc/data"}, "", "", "reading data: line 3: expected a number", exit, tool.ToolFailed},
		{"a directory of a path that is named", tool.Denial{Permission: "files", Value: "/etc"}, "", "", "see /etc/app.conf for help", exit, tool.ToolFailed},
		{"a file that another path ends with", tool.Denial{Permission: "files", Value: "/socket.py"}, "", "", "error in /usr/lib/socket.py, line 3", exit, tool.ToolFailed},
		{"a path with ./", tool.Denial{Permission: "files", Value: "/notes.txt"}, "", "", "no ./notes.txt", exit, tool.Denied},
		{"a path in a longer word", file, "", "", "max.conf is missing", exit, tool.ToolFailed},

		{"a file whose name is a word, as perror has it", word, "", "", "open list: not there", exit, tool.Denied},
		{"perror", file, "", "", "config: Operation not permitted\n", exit, tool.Denied},
		{"the system's words on standard output", file, "", "config: Operation not permitted\n", "", exit, tool.Denied},
		{"Rust", file, "", "", "thread 'main' panicked at src/main.rs:3:\ncalled `Result::unwrap()` on an `Err` value: Os { code: 63, kind: PermissionDenied, message: \"Operation not permitted\" }\n" +
			"note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n", exit, tool.Denied},
		{"Rust, printed", file, "", "", "Error: Operation not permitted (os error 63)", exit, tool.Denied},
		{"Python", file, "", "", "Traceback (most recent call last):\n  File \"t.py\", line 1\nPermissionError: [Errno 63] Operation not permitted", exit, tool.Denied},
		{"Zig", file, "", "", "error: PermissionDenied", exit, tool.Denied},
		{"Go", file, "", "", "panic: open /etc/x.conf: no\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:7 +0x1d\n", exit, tool.Denied},
		{"JavaScript", file, "", "", "Error: could not load /etc/x.conf\n    at main (tool.js:3)\n", exit, tool.Denied},
		{"a directory that may only be read", file, "", "", "save: Read-only file system", exit, tool.Denied},
		{"an object's reason", file, "", `{"success":false,"error":{"message":"cannot load x.conf"}}`, "", nil, tool.Denied},
		{"a name in quotes", call, "", "", "cannot ask 'early' for it", exit, tool.Denied},
		{"a name with its kind", call, "", "", "the tool early is not there", exit, tool.Denied},
		{"a name before its kind", call, "", "", "the early tool is not there", exit, tool.Denied},
		{"a host", host, "", "", "a.example does not answer", exit, tool.Denied},
		{"silence", file, "", "", "", exit, tool.Denied},
	} {
		more := map[string]string{"json": ", stdout: json}", "schema": "}\nresult: {type: string}"}[c.mode]
		m, err := manifests.Parse("tool.yaml", []byte("schema: caisson/v1\nname: guest\ndescription: A guest.\nmodule: {path: guest.wasm"+cmp.Or(more, "}")))
		require.NoError(t, err)
		a := &Answer{Manifest: m, Denials: []tool.Denial{c.denial}, Began: true, Stdout: wasi.Output{Bytes: []byte(c.stdout)}, log: guestLog{text: []byte(c.log)}}
		outcome, _ := a.finish(t.Context(), t.Context(), engine.Usage{}, c.err)
		assert.Equal(t, c.want, outcome.Result.Kind, "%s: %s", c.name, outcome.Result.Error)
	}
}

// TestNotesOfAToolThatReadsNoInput are reasons if it names them.
func TestNotesOfAToolThatReadsNoInput(t *testing.T) {
	a := &Answer{Manifest: &manifests.Manifest{}, Unread: true, Denials: []tool.Denial{{Permission: "files", Value: "/etc/x.conf", Note: true}}}
	for reason, want := range map[string]bool{"x.conf is missing": true, "config: Operation not permitted": true, "": false} {
		_, denied := a.cause(reason)
		assert.Equal(t, want, denied, reason)
	}
}
