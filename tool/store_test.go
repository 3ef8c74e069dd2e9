package tool

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
)

// memory is a database of one column. An execution adds its argument as a row; a query
// returns all rows, as bytes where asBytes is set.
type memory struct {
	asBytes bool
	rows    []driver.Value
}

func (m *memory) Connect(context.Context) (driver.Conn, error) { return connection{m}, nil }
func (m *memory) Driver() driver.Driver                        { return nil }

type connection struct{ *memory }

func (c connection) Prepare(string) (driver.Stmt, error) { return statement(c), nil }
func (c connection) Close() error                        { return nil }
func (c connection) Begin() (driver.Tx, error)           { return nil, errors.New("no transactions") }

type statement struct{ *memory }

func (s statement) Close() error  { return nil }
func (s statement) NumInput() int { return -1 }
func (s statement) Exec(arguments []driver.Value) (driver.Result, error) {
	s.rows = append(s.rows, arguments...)
	return driver.RowsAffected(len(arguments)), nil
}
func (s statement) Query([]driver.Value) (driver.Rows, error) { return &cursor{memory: s.memory}, nil }

type cursor struct {
	*memory
	next int
}

func (c *cursor) Columns() []string { return []string{"value"} }
func (c *cursor) Close() error      { return nil }
func (c *cursor) Next(row []driver.Value) error {
	if c.next == len(c.rows) {
		return io.EOF
	}
	row[0] = c.rows[c.next]
	if text, ok := row[0].(string); ok && c.asBytes {
		row[0] = []byte(text)
	}
	c.next++
	return nil
}

// TestTypesAreStorable stores each type through database/sql and reads it back.
func TestTypesAreStorable(t *testing.T) {
	call := Call{ID: "call_1", Type: "function", Function: Function{Name: "add", Arguments: `{"a":123456789012345678901234567890.10,"b":"ü\u0000"`}}
	result := Result{Success: true, Output: "4\n", Data: json.RawMessage(`{"value":4.0}`), Content: []Content{{Type: "image", Data: []byte{0, 255}, MIMEType: "image/png"}}}
	reference := Reference{ID: "k", Score: 0.25, Data: json.RawMessage(`[1]`)}
	fuel := int64(9)
	record := Record{
		Call: call, CallID: "0199", Result: result, Skipped: true, Cached: true, Source: "0198", Parent: "0197", ExecutionTime: 1500 * time.Millisecond, Log: "log",
		Repairs:   []Repair{{Path: "a", Rule: "default", From: json.RawMessage(`null`), To: json.RawMessage(`1.0`)}},
		Cuts:      []Cut{{Part: "output", Reference: "r", Bytes: 9, Kept: 4}},
		Denials:   []Denial{{Permission: "files", Value: "/x"}},
		HostCalls: []HostCall{{Kind: "files.open", Target: "/x", Status: "denied"}},
		Usage:     Usage{Fuel: &fuel, Wall: time.Second},
	}
	chat := ChatResponse{ID: "r", Content: "c", ToolCalls: []Call{call}, FinishReason: FinishStop, Usage: ChatUsage{TotalTokens: 3}}
	signed, fraction := call, 0.5
	signed.Signature = "c2ln"
	event := Event{
		Type: CallOutput, Time: time.Date(2026, 10, 1, 12, 0, 0, 5, time.UTC), Batch: "b", CallID: "0199", Lost: 2, Emission: &Emission{Type: EmitProgress, Fraction: &fraction},
		Calls: []Planned{{ID: "call_1", CallID: "0199", Arguments: "{"}}, Totals: &Totals{Calls: 1},
	}
	piece := StreamResponse{ID: "r", ResponseType: ResponseToolCall, KnowledgeReferences: []Reference{reference}, ToolCalls: []Call{call}, Data: json.RawMessage(`{"x":1}`)}

	for _, c := range []struct {
		name        string
		value, zero driver.Valuer
		into        func() (scanner sql.Scanner, read func() any)
	}{
		{"calls", List[Call]{call, signed}, List[Call]{}, scanner[List[Call]]},
		{"references", List[Reference]{reference}, List[Reference]{}, scanner[List[Reference]]},
		{"call", signed, Call{}, scanner[Call]},
		{"reference", reference, Reference{}, scanner[Reference]},
		{"event", event, Event{}, scanner[Event]},
		{"chat response", chat, ChatResponse{}, scanner[ChatResponse]},
		{"stream response", piece, StreamResponse{}, scanner[StreamResponse]},
		{"result", result, Result{}, scanner[Result]},
		{"record", record, Record{}, scanner[Record]},
	} {
		for _, asBytes := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				database := sql.OpenDB(&memory{asBytes: asBytes})
				defer database.Close()
				noerr.Get(database.ExecContext(t.Context(), "insert", c.value))(t)
				noerr.Get(database.ExecContext(t.Context(), "insert", nil))(t)
				rows := noerr.Get(database.QueryContext(t.Context(), "select"))(t)
				defer rows.Close()

				into, read := c.into()
				require.True(t, rows.Next())
				require.NoError(t, rows.Scan(into))
				assert.Equal(t, c.value, read())
				require.True(t, rows.Next())
				require.NoError(t, rows.Scan(into), "NULL, over a value")
				assert.Equal(t, c.zero, read())
				require.False(t, rows.Next())
				require.NoError(t, rows.Err())

				require.NoError(t, into.Scan(must(t, c.value)))
				for _, bad := range []any{int64(1), true, "", "{", "7", []byte(`"x"`), strings.Repeat("[", 20_000)} {
					require.Error(t, into.Scan(bad), "%v", bad)
					assert.Equal(t, c.value, read(), "it is left as it was")
				}
			})
		}
	}
}

func scanner[T any, P interface {
	*T
	sql.Scanner
}]() (sql.Scanner, func() any) {
	value := new(T)
	return P(value), func() any { return *value }
}

func must(t *testing.T, value driver.Valuer) driver.Value {
	stored := noerr.Get(value.Value())(t)
	return stored
}

func TestStoredEmptyListsAreLists(t *testing.T) {
	for _, value := range []driver.Valuer{List[Call](nil), List[Reference](nil)} {
		assert.Equal(t, "[]", must(t, value))
	}
	var calls List[Call]
	require.NoError(t, calls.Scan("null"))
	assert.Equal(t, List[Call]{}, calls)
}

func TestInvalidDataIsNotStored(t *testing.T) {
	assert.ErrorContains(t, noerr.Error(Result{Data: json.RawMessage(`{`)}.Value()), "storing a tool.Result")
}

// FuzzScan: whatever a column holds is refused, or read, stored and read again as the same.
func FuzzScan(f *testing.F) {
	f.Add(`{"id":"r","content":"c","tool_calls":[{"id":"a","type":"function","function":{"name":"n","arguments":"{"}}],"usage":{}}`)
	f.Add(`{"id":"r","response_type":"tool_delta","knowledge_references":[{"id":"k","score":1e-7,"data":{"a":1.0}}],"data":{}}`)
	f.Add(`[{"id":"a"},null]`)
	f.Fuzz(func(t *testing.T, column string) {
		again(t, column, func() sql.Scanner { return new(List[Call]) })
		again(t, column, func() sql.Scanner { return new(Call) })
		again(t, column, func() sql.Scanner { return new(Event) })
		again(t, column, func() sql.Scanner { return new(List[Reference]) })
		again(t, column, func() sql.Scanner { return new(ChatResponse) })
		again(t, column, func() sql.Scanner { return new(StreamResponse) })
	})
}

func again(t *testing.T, column string, fresh func() sql.Scanner) {
	first := fresh()
	if first.Scan(column) != nil {
		return
	}
	stored := must(t, first.(driver.Valuer))
	second := fresh()
	require.NoError(t, second.Scan(stored))
	require.Equal(t, stored, must(t, second.(driver.Valuer)))
}
