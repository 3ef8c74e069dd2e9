package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/records"
	"github.com/caisson-run/caisson/tool"
)

// TestExplanationForPeople pins the layout, with a record in which all that a guest chooses
// tries to look like a line of ours.
func TestExplanationForPeople(t *testing.T) {
	fuel := int64(1)
	entry := records.Entry{
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
	o := &options{}
	calls := []made{
		{"0199f3c2-5d1e-7aa0-b3a5-6f0d9c1e2b48", "a\nb", "success", 1.5015, 0.0015, 0.5, 1.4, false},
		{"0199f3c2-5d1e-7aa0-b3a5-6f0d9c1e2b49", "c", "denied", 0, 0, 0, 0, true},
	}
	assert.Equal(t, want, o.entryText(entry, explain(entry), calls))

	entry.Record.Function.Arguments = strings.Repeat("ä", 2*shownArguments)
	assert.Contains(t, o.entryText(entry, explain(entry), nil), strings.Repeat("ä", shownArguments-1)+"…\n")
}

// TestEveryKindIsExplained: what limits a call has a hint, and no hint is empty.
func TestEveryKindIsExplained(t *testing.T) {
	for _, kind := range tool.Kinds() {
		hints := kindHints(kind, records.Entry{Manifest: "/tools/tool.yaml"})
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
	for want, record := range map[string]tool.Record{
		"success": {},
		"success, reused from an earlier identical call, 0199":             {Cached: true, Source: "0199"},
		"success, reused from an identical call in its batch, 0199":        {Skipped: true, Source: "0199"},
		"denied, exit code 3; the tool was not started":                    {Skipped: true, Result: tool.Result{Kind: tool.Denied}},
		"trap, exit code 1, reused from an identical call in its batch, x": {Skipped: true, Source: "x", Result: tool.Result{Kind: tool.Trap}},
	} {
		assert.Equal(t, want, outcomeLine(record, explain(records.Entry{Record: record})))
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
	assert.Equal(t, "tool.yaml", shortPath(absolute("tool.yaml")))
	outside := absolute("../tool.yaml")
	assert.Equal(t, outside, shortPath(outside))
	require.Empty(t, shortPath(""))
}

// TestAmbiguousID: the beginning of several ids leads to those and to no others.
func TestAmbiguousID(t *testing.T) {
	folder := records.In(t.TempDir())
	ids := []string{"0199f3c2-5d1e-7aa0-b3a5-000000000001", "0199f3c2-5d1e-7aa0-b3a5-000000000002", "0199ffff-5d1e-7aa0-b3a5-000000000003"}
	keeper, err := folder.Open()
	require.NoError(t, err)
	for _, id := range ids {
		require.NoError(t, keeper.Keep(records.Entry{Record: tool.Record{CallID: id}}))
	}
	require.NoError(t, keeper.Close())
	_, err = find(folder, "0199F3C2")
	var ambiguous *failure
	require.ErrorAs(t, err, &ambiguous)
	assert.Equal(t, exitUsage, ambiguous.code)
	assert.Equal(t, `the ids of several calls begin with "0199F3C2"; give more characters`, err.Error())
	require.Len(t, ambiguous.messages[0].hints, 2)
	assert.Contains(t, ambiguous.messages[0].hints[0], ids[1])
	assert.Contains(t, ambiguous.messages[0].hints[1], ids[0])
}

// TestPagesAreTheWhole: pages of any size, read one after the other, are the whole text.
func TestPagesAreTheWhole(t *testing.T) {
	for _, whole := range []string{"", "a", "hello", "€", "a€𝄞b", strings.Repeat("ä", 9)} {
		for most := range int64(len(whole) + 3) {
			var read strings.Builder
			pages := 0
			for from := int64(0); from >= 0; pages++ {
				page := pageOf(whole, from, most)
				assert.Equal(t, from, page.From)
				assert.Equal(t, int64(len(whole)), page.Total)
				assert.True(t, utf8.ValidString(page.Text))
				assert.True(t, most == 0 || int64(len(page.Text)) <= most || utf8.RuneCountInString(page.Text) == 1, "%q", page.Text)
				read.WriteString(page.Text)
				if assert.Less(t, pages, len(whole)+1); pages > len(whole) {
					return
				}
				from = page.Next
			}
			assert.Equal(t, whole, read.String(), most)
		}
	}
	middle := pageOf("€b", 1, 0)
	assert.Equal(t, tool.Page{Text: "b", From: 3, Next: -1, Total: 4}, middle, "it begins with the next character")
}

func TestPartOf(t *testing.T) {
	result := tool.Result{
		Output: "out", Error: "err", Data: []byte(`{"a":1}`),
		Content: []tool.Content{{Type: "text", Text: "first"}, {Type: "image", Data: []byte("<"), MIMEType: "image/png"}},
	}
	for part, want := range map[string]string{
		"output": "out", "error": "err", "data": `{"a":1}`, "content[0]": "first",
		"content[1]": `{"type":"image","data":"PA==","mime_type":"image/png"}`, "content[1:]": `[{"type":"image","data":"PA==","mime_type":"image/png"}]`,
	} {
		text, ok := partOf(result, part)
		assert.True(t, ok, part)
		assert.Equal(t, want, text, part)
	}
	for _, part := range []string{"", "log", "content", "content[2]", "content[-1]", "content[0:1]", "content[99999999999999999999]", "content[0].text"} {
		_, ok := partOf(result, part)
		assert.False(t, ok, part)
	}
	_, ok := partOf(tool.Result{}, "output")
	assert.False(t, ok)
	assert.Equal(t, "the call returned nothing", partHint(tool.Result{}))
	assert.Equal(t, "choose one of its parts with --part: output, error, data, content[0], content[1]", partHint(result))
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
		o := &options{stateDir: test.state}
		assert.Equal(t, want, o.outputCommand("0199", test.part, test.from))
	}
}
