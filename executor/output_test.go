package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// text returns lines of text with characters of one to four bytes.
func text(bytes int) string {
	var b strings.Builder
	for i := 0; b.Len() < bytes; i++ {
		fmt.Fprintf(&b, "line %d: aé€😀\n", i)
	}
	return b.String()
}

// talks says as much as its argument says.
func talks(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	raw, _ := invocation.Arguments.Get("bytes")
	var bytes int
	if err := json.Unmarshal(raw, &bytes); err != nil {
		return tool.Outcome{}, err
	}
	return succeed(text(bytes)), nil
}

func outputTool(t testing.TB) registry.Tool {
	t.Helper()
	made := noerr.Get(executor.OutputTool())(t)
	return made
}

// pages reads the whole of a part page by page.
func pages(t testing.TB, session *executor.Session, reference string, most int64) string {
	t.Helper()
	var whole strings.Builder
	for from := int64(0); from >= 0; {
		page := noerr.Get(session.Page(reference, from, most))(t)
		require.Equal(t, int64(whole.Len()), page.From)
		whole.WriteString(page.Text)
		from = page.Next
	}
	return whole.String()
}

// TestOutputBudget: no result exceeds the bound on a call, and those of a batch together do not exceed
// the bound on a batch; the text has a note about the cut, and the whole is kept.
func TestOutputBudget(t *testing.T) {
	for _, test := range []struct {
		options      executor.Output
		calls, bytes int
		most         int // bytes of each result
		cut          bool
	}{
		{executor.Output{}, 1, 60_000, 64 << 10, false},
		{executor.Output{}, 1, 70_000, 64 << 10, true},
		{executor.Output{}, 4, 60_000, 64 << 10, false},
		{executor.Output{}, 8, 30_000, 32 << 10, false},
		{executor.Output{}, 8, 60_000, 32 << 10, true},
		{executor.Output{PerCall: 1000}, 2, 2000, 1000, true},
		{executor.Output{PerBatch: 4000}, 4, 2000, 1000, true},
		{executor.Output{PerBatch: 1000}, 4, 2000, 512, true},
		{executor.Output{Unlimited: true}, 8, 200_000, 1 << 20, false},
	} {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			var kept ledger
			e := newExecutor(t, executor.Options{Output: test.options, Recorder: &kept}, newFake(t, "talks", nil, talks))
			session := newSession(t, e, executor.SessionOptions{})
			var calls []tool.Call
			for range test.calls {
				calls = append(calls, newCall("1", "talks", fmt.Sprintf(`{"bytes":%d}`, test.bytes)))
			}
			whole := text(test.bytes)
			for i, record := range executeAll(t, e, executor.Batch{Session: session, Calls: calls}) {
				assert.True(t, record.Result.Success)
				assert.LessOrEqual(t, record.Result.Size(), test.most)
				assert.True(t, utf8.ValidString(record.Result.Output))
				entry := kept.all()[i]
				assert.Equal(t, whole, entry.Whole.Output)
				assert.Equal(t, record, entry.Record)
				if !test.cut {
					assert.Equal(t, whole, record.Result.Output)
					assert.Empty(t, record.Cuts)
					continue
				}
				require.Len(t, record.Cuts, 1)
				cut := record.Cuts[0]
				assert.Equal(t, "output", cut.Part)
				assert.EqualValues(t, len(whole), cut.Bytes)
				assert.Positive(t, cut.Kept)
				assert.Equal(t, whole[:cut.Kept], record.Result.Output[:cut.Kept])
				mark := record.Result.Output[cut.Kept:]
				assert.Contains(t, mark, fmt.Sprintf("output cut: %d of %d bytes shown", cut.Kept, cut.Bytes))
				assert.Contains(t, mark, cut.Reference)
				for _, most := range []int64{0, 7, 1000, 1 << 30} {
					require.True(t, whole == pages(t, session, cut.Reference, most))
				}
			}
		})
	}
}

// TestOutputOfSession: a session reads its own results and no other's, and the oldest give
// way to later ones.
func TestOutputOfSession(t *testing.T) {
	e := newExecutor(t, executor.Options{Output: executor.Output{PerCall: 1000, Kept: 25_000}}, newFake(t, "talks", readOnly, talks), outputTool(t))
	session, other := newSession(t, e, executor.SessionOptions{}), newSession(t, e, executor.SessionOptions{})
	var references []string
	for i := range 4 {
		record := ask(t, e, session, "talks", fmt.Sprintf(`{"bytes":%d}`, 10_000+i))
		references = append(references, record.Cuts[0].Reference)
	}
	for i, reference := range references {
		_, err := session.Page(reference, 0, 0)
		assert.Equal(t, i >= 2, err == nil)
		_, err = other.Page(reference, 0, 0)
		require.Error(t, err)
		record := ask(t, e, other, executor.OutputToolName, fmt.Sprintf(`{"reference":%q}`, reference))
		assert.Equal(t, tool.ToolFailed, record.Result.Kind)
		assert.NotContains(t, record.Result.Output, "line")
	}
	record := ask(t, e, other, "talks", `{"bytes":10003}`)
	assert.True(t, record.Cached)
	assert.NotEqual(t, references[3], record.Cuts[0].Reference, "a cached result is cut for the session that gets it")
	assert.Equal(t, text(10_003), pages(t, other, record.Cuts[0].Reference, 0))

	tooLong := ask(t, e, session, "talks", `{"bytes":30000}`)
	assert.Empty(t, tooLong.Cuts[0].Reference)
	assert.Contains(t, tooLong.Result.Output, "the rest is not kept")
	require.NoError(t, noerr.Error(session.Page(references[3], 0, 0)), "and drives out nothing")
}

// TestOutputTool: a model that follows the marks and the pages reads the whole, however many
// other calls are in the same batches.
func TestOutputTool(t *testing.T) {
	for _, beside := range []int{0, 1, 7, 30} {
		for _, bytes := range []int{0, 1000, 1 << 20} {
			t.Run(fmt.Sprint(beside, " calls beside, pages of ", bytes), func(t *testing.T) {
				e := newExecutor(t, executor.Options{}, newFake(t, "talks", nil, talks), newFake(t, "echo", readOnly, echo), outputTool(t))
				session := newSession(t, e, executor.SessionOptions{})
				first := ask(t, e, session, "talks", `{"bytes":200000}`)
				cut := first.Cuts[0]
				mark := first.Result.Output[cut.Kept:]
				assert.Contains(t, mark, fmt.Sprintf(`read on with read_output {"reference": "%s", "from": %d}`, cut.Reference, cut.Kept))
				read := first.Result.Output[:cut.Kept]
				for next := cut.Kept; next >= 0; {
					arguments := fmt.Sprintf(`{"reference":%q,"from":%d}`, cut.Reference, next)
					if bytes > 0 {
						arguments = fmt.Sprintf(`{"reference":%q,"from":%d,"bytes":%d}`, cut.Reference, next, bytes)
					}
					calls := append([]tool.Call{newCall("1", executor.OutputToolName, arguments)}, many("echo", beside)...)
					record := executeAll(t, e, executor.Batch{Session: session, Calls: calls})[0]
					require.True(t, record.Result.Success, record.Result.Error)
					require.Empty(t, record.Cuts, "a page is not cut again")
					var page struct{ From, Next, Total int64 }
					require.NoError(t, json.Unmarshal(record.Result.Data, &page))
					require.Equal(t, next, page.From)
					require.True(t, page.Next < 0 || page.Next > next)
					text := record.Result.Output
					if page.Next >= 0 { // a model reads where to read on from the output
						text, _, _ = strings.Cut(text, fmt.Sprintf("\n[bytes %d to %d of %d; the next page begins at %[2]d]", page.From, page.Next, page.Total))
						require.Len(t, text, int(page.Next-page.From))
					}
					read, next = read+text, page.Next
				}
				assert.True(t, read == text(200_000))
			})
		}
	}
}

// TestOutputToolRefuses: a model is told about the mistake in its arguments.
func TestOutputToolRefuses(t *testing.T) {
	e := newExecutor(t, executor.Options{Output: executor.Output{PerCall: 1000}}, newFake(t, "talks", nil, talks), outputTool(t))
	session := newSession(t, e, executor.SessionOptions{})
	reference := ask(t, e, session, "talks", `{"bytes":2000}`).Cuts[0].Reference
	for arguments, want := range map[string]tool.Kind{
		`{"reference":"missing"}`: tool.ToolFailed,
		`{"reference":""}`:        tool.ToolFailed,
		fmt.Sprintf(`{"reference":%q,"from":1000000}`, reference): tool.ToolFailed,
		`{}`:                               tool.InvalidArguments,
		`{"reference":"missing","more":1}`: tool.InvalidArguments,
		`{"reference":["a","b"],"from":0}`: tool.InvalidArguments,
	} {
		record := ask(t, e, session, executor.OutputToolName, arguments)
		assert.Equal(t, want, record.Result.Kind, arguments)
		assert.NotEmpty(t, record.Result.Error)
	}
	assert.True(t, ask(t, e, session, executor.OutputToolName, fmt.Sprintf(`{"reference":%q,"from":"5"}`, reference)).Result.Success, "it is repaired like any call")
}

// TestOutputHint: the program can set the hint for reading the rest; without a hint or a tool, the
// mark has the reference.
func TestOutputHint(t *testing.T) {
	hint := func(cut tool.Cut) string { return "see " + cut.Part + " " + cut.Reference }
	for name, test := range map[string]struct {
		hint  func(tool.Cut) string
		tools []registry.Tool
		want  string
	}{
		"own":                          {hint, []registry.Tool{outputTool(t)}, "; see output REFERENCE]"},
		"the tool":                     {nil, []registry.Tool{outputTool(t)}, `; read on with read_output {"reference": "REFERENCE", "from": `},
		"none":                         {nil, nil, "; the rest is kept under the reference REFERENCE]"},
		"another tool's name is taken": {nil, []registry.Tool{newFake(t, executor.OutputToolName, nil, echo)}, "; the rest is kept under the reference REFERENCE]"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newExecutor(t, executor.Options{Output: executor.Output{PerCall: 1000, Hint: test.hint}}, append(test.tools, newFake(t, "talks", nil, talks))...)
			record := ask(t, e, nil, "talks", `{"bytes":2000}`)
			assert.Contains(t, record.Result.Output, strings.ReplaceAll(test.want, "REFERENCE", record.Cuts[0].Reference))
		})
	}
}

// TestNestedOutput: a tool gets whole results of nested calls; its own result is cut.
func TestNestedOutput(t *testing.T) {
	e := newExecutor(t, executor.Options{Output: executor.Output{PerCall: 1000}}, newFake(t, "relay", may(true, "talks"), relay), newFake(t, "talks", readOnly, talks))
	session := newSession(t, e, executor.SessionOptions{})
	record := ask(t, e, session, "relay", calling(function("talks", `{"bytes":5000}`)))
	require.Len(t, record.Cuts, 1)
	assert.Equal(t, "talks:"+text(5000), pages(t, session, record.Cuts[0].Reference, 0))
}

func TestHintThatPanics(t *testing.T) {
	var log journal
	e := newExecutor(t, executor.Options{
		Logger: log.Logger(),
		Output: executor.Output{PerCall: 600, Hint: func(tool.Cut) string { panic("no hint") }},
	}, newFake(t, "long", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
		return succeed(strings.Repeat("x", 1000)), nil
	}))
	record := execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "long", "")}})
	assert.True(t, record.Result.Success)
	assert.Regexp(t, `^x+\n\[output cut: \d+ of 1000 bytes shown\]$`, record.Result.Output)
	assert.Contains(t, log.String(), "no hint")
}
