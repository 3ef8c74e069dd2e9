package view

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// TestExplanationForPeople pins the layout, with a record in which all that a guest chooses
// tries to look like a line of ours.
func TestExplanationForPeople(t *testing.T) {
	fuel := int64(1)
	entry := ledger.Entry{
		Time: time.Date(2026, 11, 20, 17, 53, 2, 0, time.UTC), Source: "/tools", Manifest: "/tools/fetch.tool.yaml",
		Record: tool.Record{
			Call:   tool.Call{ID: "call_1", Type: "function", Function: tool.Function{Name: "fetch", Arguments: "{\"url\":\"x\"}\ncall forged"}},
			CallID: "0199f3c2-5d1e-7aa0-b3a5-6f0d9c1e2b47",
			Result: tool.Result{Error: "no\ndenied", Kind: tool.Denied}, ExecutionTime: 2 * time.Second,
			Repairs: []tool.Repair{{Path: "n", Rule: "cast", From: []byte(`"5"`), To: []byte(`5`)}},
			Denials: []tool.Denial{
				{Permission: "network", Value: "https://a.test/\n", Rule: "no grant", Allow: tool.Allow{
					Manifest: json.RawMessage(`{"network":[{"host":"a.test"}]}`), Grant: json.RawMessage(`{"tools":["fetch"],"network":[{"host":"a.test"}]}`),
				}},
				{Permission: "files", Value: "/x", Rule: "denied"},
			},
			HostCalls: []tool.HostCall{
				{Kind: "network.request", Target: "GET https://a.test/", Bytes: 12, Duration: 1500 * time.Microsecond, Status: "denied"},
				{Kind: "files.open", Target: "/a\n\x1b[31m", Bytes: 5, Duration: 900, Allowed: true, Status: "ok"},
			},
			Parent: "0199f3c2-0000-7aa0-b3a5-6f0d9c1e2b47",
			Cuts:   []tool.Cut{{Part: "output", Bytes: 9000, Kept: 1000}, {Part: "content[0]", Bytes: 5, Kept: 0}},
			Log:    "busy\nlog\x07\n", Usage: tool.Usage{Fuel: &fuel, MemoryBytes: 1 << 20, HostCalls: 300, Wall: 1234567 * time.Nanosecond, Queue: 500 * time.Millisecond, Compile: 1500 * time.Millisecond},
		},
	}
	local := time.Local
	t.Cleanup(func() { time.Local = local })
	time.Local = time.UTC
	want := `fetch: no\ndenied

call         0199f3c2-5d1e-7aa0-b3a5-6f0d9c1e2b47
time         2026-11-20 17:53:02 +00:00
manifest     /tools/fetch.tool.yaml
source       /tools
made by      0199f3c2-0000-7aa0-b3a5-6f0d9c1e2b47
arguments    {"url":"x"}\ncall forged
outcome      denied, exit code 3
took         1.23ms, 1 instruction, 1MiB of memory, 300 host calls; 500ms in the queue, 1.5s compiling, 499ms for the host's own work
repairs      n: "5" to 5 (cast)
truncated    output: 1000 of 9000 bytes were returned; caisson explain 0199f3c2-5d1e-7aa0-b3a5-6f0d9c1e2b47 --output
             content[0]: 0 of 5 bytes were returned; caisson explain 0199f3c2-5d1e-7aa0-b3a5-6f0d9c1e2b47 --output --part 'content[0]'

calls that it made
  CALL                                  TOOL  OUTCOME  TIME    WAITED
  0199f3c2-5d1e-7aa0-b3a5-6f0d9c1e2b48  a\nb  success  1.5ms   2s
  0199f3c2-5d1e-7aa0-b3a5-6f0d9c1e2b49  c     denied   cached

host calls
  KIND             TARGET               BYTES  TIME   ALLOWED  STATUS
  network.request  GET https://a.test/  12     1.5ms  no       denied
  files.open       /a\n\x1b[31m         5      900ns  yes      ok
  and 298 more host calls

denied
  network https://a.test/\n: no grant
    the manifest /tools/fetch.tool.yaml must request it: permissions: {network: [{host: a.test}]}
    allow it with --allow-net a.test
    or in caisson.yaml, under grants: - {tools: [fetch], network: [{host: a.test}]}
  files /x: denied

log
  busy
  log\x07
`
	calls := []ledger.Entry{
		{Record: tool.Record{
			Call: tool.Call{Function: tool.Function{Name: "a\nb"}}, CallID: "0199f3c2-5d1e-7aa0-b3a5-6f0d9c1e2b48",
			ExecutionTime: 1501500 * time.Microsecond, Usage: tool.Usage{Wall: 1500 * time.Microsecond, Queue: 500 * time.Millisecond, Compile: 1400 * time.Millisecond},
		}},
		{Record: tool.Record{
			Call: tool.Call{Function: tool.Function{Name: "c"}}, CallID: "0199f3c2-5d1e-7aa0-b3a5-6f0d9c1e2b49",
			Result: tool.Result{Kind: tool.Denied}, Cached: true,
		}},
	}
	assert.Equal(t, want, NewCall(entry, calls, 3).Text(nil))

	entry.Record.Function.Arguments = strings.Repeat("ä", 2*shownArguments)
	assert.Contains(t, NewCall(entry, nil, 3).Text(nil), strings.Repeat("ä", shownArguments-1)+"…\n")
}

// TestEveryKindIsExplained: what limits a call has a hint, and no hint is empty.
func TestEveryKindIsExplained(t *testing.T) {
	for _, kind := range tool.Kinds() {
		hints := kindHints(kind, ledger.Entry{Manifest: "/tools/tool.yaml"})
		for _, hint := range hints {
			assert.NotEmpty(t, hint)
		}
		switch kind {
		case tool.Deadline, tool.Memory, tool.Fuel, tool.Output, tool.Internal:
			assert.Len(t, hints, 1, "%s", kind)
		default:
			assert.Empty(t, hints, "%s", kind)
		}
	}
}

func TestWhereAnAnswerComesFrom(t *testing.T) {
	for _, test := range []struct {
		want   string
		record tool.Record
		exit   int
	}{
		{"success", tool.Record{}, 0},
		{"success, reused from an earlier identical call, 0199", tool.Record{Cached: true, Source: "0199"}, 0},
		{"success, reused from an identical call in its batch, 0199", tool.Record{Skipped: true, Source: "0199"}, 0},
		{"denied, exit code 3; the tool was not started", tool.Record{Skipped: true, Result: tool.Result{Kind: tool.Denied}}, 3},
		{"trap, exit code 1, reused from an identical call in its batch, x", tool.Record{Skipped: true, Source: "x", Result: tool.Result{Kind: tool.Trap}}, 1},
		{"internal", tool.Record{Result: tool.Result{Kind: tool.Internal}}, 0},
	} {
		assert.Equal(t, test.want, NewCall(ledger.Entry{Record: test.record}, nil, test.exit).outcomeLine())
	}
}

func TestRoundTime(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "999ns": 999, "1.23µs": 1234, "12.3µs": 12345, "1.24ms": 1235500, "123ms": 123456789,
		"1.23s": 1234567890, "2m3s": 123 * time.Second,
	} {
		assert.Equal(t, want, roundTime(d))
	}
}

func TestShortPath(t *testing.T) {
	t.Chdir(t.TempDir())
	here := noerr.Get(filepath.Abs("."))(t)
	assert.Equal(t, "tool.yaml", shortPath(filepath.Join(here, "tool.yaml")))
	outside := filepath.Join(filepath.Dir(here), "tool.yaml")
	assert.Equal(t, outside, shortPath(outside))
	require.Empty(t, shortPath(""))
}

func TestOutputCommand(t *testing.T) {
	for want, test := range map[string]struct {
		state *string
		part  string
		from  int64
	}{
		"caisson explain 0199 --output":                                      {nil, "output", 0},
		"caisson explain 0199 --output --from 5":                             {nil, "output", 5},
		"caisson explain 0199 --output --part data":                          {nil, "data", 0},
		"caisson explain 0199 --output --part 'content[1:]' --from 7":        {nil, "content[1:]", 7},
		"caisson explain 0199 --output --state-dir ./kept":                   {new("./kept"), "output", 0},
		`caisson explain 0199 --output --state-dir 'it'\''s here; rm -rf .'`: {new("it's here; rm -rf ."), "output", 0},
	} {
		assert.Equal(t, want, OutputCommand("0199", test.part, test.from, test.state))
	}
}
