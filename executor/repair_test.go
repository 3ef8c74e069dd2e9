package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// search is a tool with something of each kind to repair, and a value of the host's.
var search = fields{
	"context": []string{"project_id"}, "aliases": []string{"find"},
	"parameters": fields{
		"type": "object", "required": []string{"query"}, "additionalProperties": false,
		"properties": fields{
			"query": fields{"type": "string"}, "limit": fields{"type": "integer", "maximum": 10, "default": 5},
			"tags": fields{"type": "array", "items": fields{"type": "string"}}, "project_id": fields{"type": "string", "maxLength": 9},
		},
	},
}

func repaired(path, rule, from, to string) tool.Repair {
	return tool.Repair{Path: path, Rule: rule, From: json.RawMessage(from), To: json.RawMessage(to)}
}

func TestRepairs(t *testing.T) {
	e := newExecutor(t, executor.Options{TolerantJSON: true}, newFake(t, "search", search, echo))
	tests := []struct {
		name, tool, arguments, output string
		repairs                       []tool.Repair
	}{
		{"nothing to repair", "search", `{"query":"x","limit":1.0}`, `{"query":"x","limit":1,"project_id":"p"}`, nil},
		{"a default", "search", `{"query":"x"}`, `{"query":"x","limit":5,"project_id":"p"}`, []tool.Repair{repaired("limit", "default", `null`, `5`)}},
		{"several", "search", `{"query":"1.50","limit":"50","tags":"a"}`, `{"query":"1.50","limit":10,"tags":["a"],"project_id":"p"}`, []tool.Repair{
			repaired("limit", "cast_number", `"50"`, `50`),
			repaired("limit", "clamp", `50`, `10`), repaired("tags", "wrap_array", `"a"`, `["a"]`),
		}},
		{"the tool's name around it", "search", `{"search":{"query":"x","limit":1}}`, `{"query":"x","limit":1,"project_id":"p"}`, []tool.Repair{repaired("", "unwrap", `{"search":{"query":"x","limit":1}}`, `{"query":"x","limit":1}`)}},
		{"the alias that was called", "find", `{"find":{"query":"x","limit":1}}`, `{"query":"x","limit":1,"project_id":"p"}`, []tool.Repair{repaired("", "unwrap", `{"find":{"query":"x","limit":1}}`, `{"query":"x","limit":1}`)}},
		{"a string of JSON", "search", `"{\"query\":\"x\",\"limit\":\"1\"}"`, `{"query":"x","limit":1,"project_id":"p"}`, []tool.Repair{
			repaired("", "parse_json", `"{\"query\":\"x\",\"limit\":\"1\"}"`, `{"query":"x","limit":"1"}`), repaired("limit", "cast_number", `"1"`, `1`),
		}},
		{"almost JSON", "search", `{query: 'x', limit: 1,}`, `{"query":"x","limit":1,"project_id":"p"}`, []tool.Repair{repaired("", "tolerant_json", `"{query: 'x', limit: 1,}"`, `{"query":"x","limit":1}`)}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			record := execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", test.tool, test.arguments)}, Session: withContext(t, e, map[string]string{"project_id": "p"})})
			require.True(t, record.Result.Success, record.Result.Error)
			assert.Equal(t, test.output, record.Result.Output)
			assert.Equal(t, test.repairs, record.Repairs)
			assert.Equal(t, test.arguments, record.Function.Arguments, "the record shows what the model wrote")
		})
	}
}

// TestIntegersAreInDigits: however a model or a program writes an integer, the tool reads digits, and approvals are for
// the digits. Equal integers have the same cached result.
func TestIntegersAreInDigits(t *testing.T) {
	integer := fields{"type": "integer"}
	parameters := fields{"type": "object", "properties": fields{
		"n": integer, "x": fields{"type": "number"}, "project": fields{"type": "string"},
		"deep": fields{"anyOf": []fields{{"type": "null"}, {"type": "object", "properties": fields{"l": fields{"type": "array", "items": integer}}}}},
	}}
	with := func(more fields) fields {
		all := fields{"parameters": parameters, "context": []string{"project"}}
		maps.Copy(all, more)
		return all
	}
	const written, plain = `{"n":30e-1,"x":3.0,"deep":{"l":[1.0,2e2]}}`, `{"n":3,"x":3.0,"deep":{"l":[1,200]},"project":"p"}`
	var count counted
	outer := newFake(t, "outer", fields{"permissions": fields{"tools": []string{"count"}}}, func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
		record, err := invocation.Host.Call(ctx, tool.Call{Function: tool.Function{Name: "count", Arguments: written}})
		return tool.Outcome{Result: record.Result}, err
	})
	for _, options := range []executor.Options{{}, {NoRepair: true}} {
		e := newExecutor(t, options, newFake(t, "count", with(nil), echo), outer,
			newFake(t, "reads", with(behaves(fields{"read_only": true})), count.answer), newFake(t, "removes", with(destructive), echo))
		session := withContext(t, e, map[string]string{"project": "p"})
		record := ask(t, e, session, "count", written)
		assert.Equal(t, plain, record.Result.Output)
		assert.Empty(t, record.Repairs, "the value is the same")
		assert.Equal(t, written, record.Function.Arguments)
		assert.Equal(t, plain, ask(t, e, session, "outer", "").Result.Output, "a program's call")

		assert.False(t, ask(t, e, session, "reads", `{"n":3.0}`).Cached)
		assert.True(t, ask(t, e, session, "reads", `{"n":3}`).Cached)

		report := paused(t, e, session, newCall("1", "removes", written))
		assert.Equal(t, `{"n":3,"x":3.0,"deep":{"l":[1,200]}}`, string(report.Pending[0].Arguments))
		approval := approve(report.Pending[0])
		approval.Scope = tool.ApproveSession
		done := resume(t, e, executor.Resumption{State: stored(t, report.State), Session: session, Approvals: []tool.Approval{approval}})
		assertCompleted(t, done)
		assert.Equal(t, plain, done.Records[0].Result.Output)
		assert.True(t, ask(t, e, session, "removes", `{"n":3,"x":3.0,"deep":{"l":[1,200]}}`).Result.Success, "approved of the same effect")

		for _, huge := range []string{`{"n":1e300}`, `{"n":1e400}`, `{"n":1e999999999}`, `{"n":-1e999999999999999999999}`} {
			record := ask(t, e, session, "count", huge)
			assert.Equal(t, tool.InvalidArguments, record.Result.Kind, huge)
			assert.Contains(t, record.Result.Error, "n: ", huge)
		}
	}
}

// TestRepairsOfRefusedCalls: the repairs made before a call was refused are in its record,
// and the error lists only the remaining mistakes.
func TestRepairsOfRefusedCalls(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newFake(t, "search", search, echo))
	run := func(name, arguments, project string) tool.Record {
		return execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", name, arguments)}, Session: withContext(t, e, map[string]string{"project_id": project})})
	}
	record := run("search", `{"limit":"1","quary":"x"}`, "p")
	assert.Equal(t, tool.InvalidArguments, record.Result.Kind)
	assert.Equal(t, "quary: unknown parameter (known: limit, query, tags); query: required, but missing", record.Result.Error)
	assert.Equal(t, []tool.Repair{repaired("limit", "cast_number", `"1"`, `1`)}, record.Repairs)

	record = run("none", `"{}"`, "p")
	assert.Equal(t, tool.UnknownTool, record.Result.Kind)
	assert.Equal(t, []tool.Repair{repaired("", "parse_json", `"{}"`, `{}`)}, record.Repairs)

	record = run("search", `{"query":"x","limit":"1"}`, "confidential")
	assert.Equal(t, tool.Denied, record.Result.Kind, "the host's value is not repaired")
	text := jsonOf(t, record)
	assert.NotContains(t, string(text), "confidential")
}

// TestRepairDoesNotForge: no repair brings a value to the tool that the model may not set.
func TestRepairDoesNotForge(t *testing.T) {
	loose := fields{"context": []string{"project_id"}, "parameters": fields{
		"type": "object", "required": []string{"n"},
		"properties": fields{"n": fields{"type": "integer"}, "project_id": fields{"default": "evil"}, "o": fields{"$ref": "#/$defs/o"}},
		"$defs":      fields{"o": fields{"type": "object", "properties": fields{"Project_ID": fields{"default": "evil"}}}},
		"allOf":      []fields{{"$ref": "#/$defs/o"}},
	}}
	e := newExecutor(t, executor.Options{TolerantJSON: true}, newFake(t, "loose", loose, echo))
	for _, arguments := range []string{
		`{"n":1}`, `{"n":"1"}`, `{"arguments":{"n":1,"project_id":"evil"}}`, `{"arguments":{"n":1,"Project_ID":"evil"}}`,
		`"{\"n\":1,\"project_id\":\"evil\"}"`, `{n: 1, PROJECT_ID: 'evil'}`, `{"loose":{"n":1,"project_\u0069d":"evil"}}`, `{"Project_ID":null,"n":"1"}`,
	} {
		record := execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "loose", arguments)}, Session: withContext(t, e, map[string]string{"project_id": "mine"})})
		if !record.Result.Success {
			assert.Contains(t, []tool.Kind{tool.Denied, tool.InvalidArguments}, record.Result.Kind)
			continue
		}
		got := noerr.Decode[map[string]json.RawMessage](t, []byte(record.Result.Output))
		assert.Equal(t, `"mine"`, string(got["project_id"]), arguments)
		assert.NotContains(t, got, "Project_ID", arguments)
	}
}

func TestNoRepair(t *testing.T) {
	e := newExecutor(t, executor.Options{NoRepair: true}, newFake(t, "search", search, echo))
	run := func(arguments string) tool.Record {
		return execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "search", arguments)}, Session: withContext(t, e, map[string]string{"project_id": "p"})})
	}
	record := run(`{"query":"x"}`)
	assert.Equal(t, `{"query":"x","project_id":"p"}`, record.Result.Output, "no defaults either")
	assert.Empty(t, record.Repairs)
	for _, arguments := range []string{`{"query":1}`, `"{\"query\":\"x\"}"`, `{query:'x'}`} {
		record := run(arguments)
		assert.Equal(t, tool.InvalidArguments, record.Result.Kind)
		assert.Empty(t, record.Repairs)
	}
	require.ErrorIs(t, noerr.Error(executor.New(registry.New(), executor.Options{NoRepair: true, TolerantJSON: true})), executor.ErrInvalidOptions)
}

// TestAlmostJSONIsAnOption: it is refused unless it is asked for.
func TestAlmostJSONIsAnOption(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newFake(t, "plain", nil, echo))
	record := execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "plain", `{a: 1}`)}})
	assert.Equal(t, tool.InvalidArguments, record.Result.Kind)
	assert.Contains(t, record.Result.Error, "not JSON: want a ")
}

func TestRepairsAreLogged(t *testing.T) {
	var log journal
	e := newExecutor(t, executor.Options{Logger: log.Logger()}, newFake(t, "search", search, echo))
	record := execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "search", `{"query":"471100174711","limit":"471100174711"}`)}, Session: withContext(t, e, map[string]string{"project_id": "p"})})
	require.True(t, record.Result.Success)
	lines := log.Lines(t)
	i := slices.IndexFunc(lines, func(line map[string]any) bool { return line["msg"] == "arguments repaired" })
	require.GreaterOrEqual(t, i, 0)
	assert.Equal(t, "INFO", lines[i]["level"])
	assert.Equal(t, record.CallID, lines[i]["call_id"])
	assert.EqualValues(t, 2, lines[i]["repairs"])
	assert.Equal(t, []any{"cast_number", "clamp"}, lines[i]["rules"])
	assert.NotContains(t, log.String(), "471100174711")

	execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "search", `{"query":"x","limit":1}`)}, Session: withContext(t, e, map[string]string{"project_id": "p"})})
	assert.Equal(t, 1, strings.Count(log.String(), "arguments repaired"), "only where something was")
}

// TestRepairOfReloadedTool: after a reload under the same name, the new schema is used.
func TestRepairOfReloadedTool(t *testing.T) {
	of := func(kind string) *registry.Registry {
		return newRegistry(t, newFake(t, "one", fields{"parameters": fields{"type": "object", "properties": fields{"v": fields{"type": kind}}}}, echo))
	}
	swapped := &swappingResolver{Registry: of("integer")}
	e := executorOf(t, swapped, executor.Options{})
	run := func(arguments string) string {
		return execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "one", arguments)}}).Result.Output
	}
	assert.Equal(t, `{"v":5}`, run(`{"v":"5"}`))
	swapped.Registry = of("boolean")
	assert.Equal(t, `{"v":true}`, run(`{"v":"true"}`))
}

// swappingResolver is a registry that a test replaces between batches.
type swappingResolver struct{ *registry.Registry }

func TestRepairAtOnce(t *testing.T) {
	var tools []registry.Tool
	for i := range 4 {
		tools = append(tools, newFake(t, fmt.Sprint("search", i, "_tool"), search, echo))
	}
	e := newExecutor(t, executor.Options{}, tools...)
	session := withContext(t, e, map[string]string{"project_id": "p"})
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 50 {
				report, err := e.Execute(t.Context(), executor.Batch{Session: session, Calls: []tool.Call{
					newCall("1", fmt.Sprint("search", (i+j)%4, "_tool"), fmt.Sprintf(`{"query":"%d","tags":"a"}`, j)),
				}})
				assert.NoError(t, err)
				assert.Equal(t, fmt.Sprintf(`{"query":"%d","tags":["a"],"limit":5,"project_id":"p"}`, j), report.Records[0].Result.Output)
				assert.Len(t, report.Records[0].Repairs, 2)
			}
		})
	}
	group.Wait()
}

// BenchmarkRepair measures calls whose arguments fit, need a default, or need repair.
func BenchmarkRepair(b *testing.B) {
	answer := func(context.Context, tool.Invocation) (tool.Outcome, error) { return succeed(""), nil }
	var parts []string
	for i := range 50 {
		parts = append(parts, fmt.Sprintf(`"tag%d"`, i))
	}
	many := strings.Join(parts, ",")
	for name, arguments := range map[string]string{
		"fits": `{"query":"x","limit":1,"tags":["a"]}`, "default": `{"query":"x","tags":["a"]}`,
		"fits-50": `{"query":"x","limit":1,"tags":[` + many + `]}`, "default-50": `{"query":"x","tags":[` + many + `]}`,
		"one": `{"query":"x","limit":"1"}`, "three": `{"query":"1","limit":"50","tags":"a"}`,
	} {
		for _, off := range []bool{false, true} {
			if off && !strings.HasPrefix(name, "fits") {
				continue // it would be refused
			}
			e := newExecutor(b, executor.Options{NoRepair: off, Rates: unlimited}, newFake(b, "search", search, answer))
			batch := executor.Batch{Calls: []tool.Call{newCall("1", "search", arguments)}, Session: withContext(b, e, map[string]string{"project_id": "p"})}
			b.Run(fmt.Sprintf("arguments=%s/off=%t", name, off), func(b *testing.B) {
				b.ReportAllocs()
				var took []time.Duration
				for b.Loop() {
					start := time.Now()
					report, err := e.Execute(b.Context(), batch)
					took = append(took, time.Since(start))
					if err != nil || !report.Records[0].Result.Success {
						b.Fatal(err, report)
					}
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns/call")
			})
		}
	}
}
