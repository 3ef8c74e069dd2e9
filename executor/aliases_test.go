package executor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// renamed is a tool whose parameters have other names.
var renamed = fields{
	"context": []string{"project_id"},
	"parameter_aliases": fields{
		"q": "query", "count": "limit", "most": "limit",
		"append": fields{"parameter": "mode", "values": fields{"true": "append", "false": "write", "null": "write"}},
	},
	"parameters": fields{
		"type": "object", "required": []string{"query"}, "additionalProperties": false,
		"properties": fields{
			"query": fields{"type": "string"}, "limit": fields{"type": "integer", "maximum": 10, "default": 5},
			"mode": fields{"enum": []string{"write", "append"}}, "project_id": fields{"type": "string"},
		},
	},
}

func TestParameterAliases(t *testing.T) {
	tests := []struct {
		name, arguments, output string
		repairs                 []tool.Repair
	}{
		{"its own names", `{"query":"x","limit":1}`, `{"query":"x","limit":1,"project_id":"p"}`, nil},
		{"in its place, before defaults", `{"q":"x"}`, `{"query":"x","limit":5,"project_id":"p"}`, []tool.Repair{
			repaired("q", "alias", `"x"`, `null`), repaired("query", "alias", `null`, `"x"`), repaired("limit", "default", `null`, `5`),
		}},
		{"then repaired", `{"count":"50","q":"x"}`, `{"limit":10,"query":"x","project_id":"p"}`, []tool.Repair{
			repaired("count", "alias", `"50"`, `null`), repaired("limit", "alias", `null`, `"50"`),
			repaired("q", "alias", `"x"`, `null`), repaired("query", "alias", `null`, `"x"`),
			repaired("limit", "cast_number", `"50"`, `50`), repaired("limit", "clamp", `50`, `10`),
		}},
		{"what a value means", `{"query":"x","limit":1,"append":true}`, `{"query":"x","limit":1,"mode":"append","project_id":"p"}`, []tool.Repair{
			repaired("append", "alias", `true`, `null`), repaired("mode", "alias", `null`, `"append"`),
		}},
		{"and what its text means", `{"query":"x","limit":1,"append":"false"}`, `{"query":"x","limit":1,"mode":"write","project_id":"p"}`, []tool.Repair{
			repaired("append", "alias", `"false"`, `null`), repaired("mode", "alias", `null`, `"write"`),
		}},
		{"inside a wrapper", `{"arguments":{"q":"x","limit":1}}`, `{"query":"x","limit":1,"project_id":"p"}`, []tool.Repair{
			repaired("", "unwrap", `{"arguments":{"q":"x","limit":1}}`, `{"q":"x","limit":1}`),
			repaired("q", "alias", `"x"`, `null`), repaired("query", "alias", `null`, `"x"`),
		}},
	}
	e := newExecutor(t, executor.Options{}, newFake(t, "search", renamed, echo))
	run := func(e *executor.Executor, arguments string) tool.Record {
		return execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "search", arguments)}, Session: withContext(t, e, map[string]string{"project_id": "p"})})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			record := run(e, test.arguments)
			require.True(t, record.Result.Success, record.Result.Error)
			assert.Equal(t, test.output, record.Result.Output)
			assert.Equal(t, test.repairs, record.Repairs)
			assert.Equal(t, test.arguments, record.Function.Arguments, "the record shows what the model wrote")
		})
	}
	for arguments, want := range map[string]string{
		`{"query":"x","q":"y"}`:                  "invalid arguments: q is another name for query, and both are given; write only query",
		`{"q":"y","query":"x"}`:                  "invalid arguments: q is another name for query, and both are given; write only query",
		`{"query":"x","count":1,"most":1}`:       "invalid arguments: count and most are both other names for limit; write only limit",
		`{"query":"x","append":"yes"}`:           `mode: want one of "write", "append", got "yes"`,
		`{"query":"x","number":1}`:               "number: unknown parameter (known: limit, mode, query)",
		`{"query":"x","Count":1}`:                "Count: unknown parameter",
		`{"arguments":{"q":"x","query":"x"}}`:    "arguments: unknown parameter",
		`{"q":"x","project_id":"mine"}`:          "the host fills in project_id",
		`{"arguments":{"q":"x","project_id":1}}`: "arguments: unknown parameter",
	} {
		record := run(e, arguments)
		assert.False(t, record.Result.Success, arguments)
		assert.Contains(t, record.Result.Error, want, arguments)
	}

	record := run(newExecutor(t, executor.Options{NoRepair: true}, newFake(t, "search", renamed, echo)), `{"q":"x","count":7}`)
	assert.Equal(t, `{"query":"x","limit":7,"project_id":"p"}`, record.Result.Output, "an alias is not a mistake that is repaired")
}

// TestParameterAliasIsTheSameCall: the answer is that of the call under the parameter's own name.
func TestParameterAliasIsTheSameCall(t *testing.T) {
	read := fields{"behavior": fields{"read_only": true}}
	for key, value := range renamed {
		read[key] = value
	}
	e := newExecutor(t, executor.Options{}, newFake(t, "search", read, echo))
	report := noerr.Get(e.Execute(t.Context(), executor.Batch{
		Calls:   []tool.Call{newCall("1", "search", `{"query":"x","limit":2}`), newCall("2", "search", `{"count":2,"q":"x"}`)},
		Session: withContext(t, e, map[string]string{"project_id": "p"}),
	}))(t)
	assert.True(t, report.Records[1].Skipped)
}

// TestHostileAliases: arguments with as many members as fit take about a second, as without an alias.
func TestHostileAliases(t *testing.T) {
	var b strings.Builder
	for i := 0; b.Len() < tool.MaxArgumentsBytes-100; i++ {
		fmt.Fprintf(&b, `"%d":1,`, i)
	}
	e := newExecutor(t, executor.Options{}, newFake(t, "search", renamed, echo))
	start := time.Now()
	record := execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "search", "{"+b.String()+`"q":"x"}`)}, Session: withContext(t, e, map[string]string{"project_id": "p"})})
	assert.Equal(t, tool.InvalidArguments, record.Result.Kind)
	assert.Less(t, time.Since(start), 30*time.Second)
}
