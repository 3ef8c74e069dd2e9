package tools_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
	"github.com/caisson-run/caisson/wasm-tools/internal/toolname"
)

// sqlTools are the three tools of the folder sql, on a separate project.
type sqlTools struct {
	t       testing.TB
	project string
	run     *executor.Executor
	session *executor.Session
}

// rows is the data of database_query and data_analysis.
type rows struct {
	Columns    []string            `json:"columns"`
	Rows       [][]json.RawMessage `json:"rows"`
	Truncated  bool                `json:"truncated"`
	NextOffset int                 `json:"next_offset"`
}

// openSQL copies the databases of testdata that are named into a project, and loads the tools.
func openSQL(t testing.TB, databases ...string) *sqlTools {
	t.Helper()
	found, err := registry.Directory("sql", nil).Manifests(t.Context())
	require.NoError(t, err)
	return openSQLTools(t, found, 2*time.Minute, databases...) // the tests do not measure time
}

// openSQLTools bounds calls by a time instead of their manifests'.
func openSQLTools(t testing.TB, found []registry.Found, timeout time.Duration, databases ...string) *sqlTools {
	t.Helper()
	s := &sqlTools{t: t, project: t.TempDir()}
	for _, name := range databases {
		content, err := os.ReadFile(filepath.Join("sql", "testdata", name))
		require.NoError(t, err)
		s.write(name, string(content))
	}
	require.Len(t, found, 3)
	all, rt := registry.New(), newRuntime(t, runtime.Options{Limits: runtime.Limits{Timeout: timeout}})
	for _, f := range found {
		require.Nil(t, f.Broken)
		f.Manifest.Limits.Timeout = timeout
		loaded, err := rt.Load(t.Context(), f.Manifest, manifests.Grants{
			Files:   []manifests.FileGrant{manifests.GrantDirectory("/project", s.project, manifests.AccessRead)},
			Context: manifests.GrantContext("project_id"),
		})
		require.NoError(t, err)
		require.NoError(t, all.Register("wasm-tools", loaded))
	}
	var err error
	s.run, err = executor.New(all, executor.Options{Reuse: executor.Reuse{Scope: executor.ReuseNone}, Output: executor.Output{Unlimited: true}, Breaker: executor.Breaker{Off: true}})
	require.NoError(t, err)
	s.session, err = s.run.NewSession(executor.SessionOptions{Context: map[string]string{"project_id": "demo"}})
	require.NoError(t, err)
	return s
}

func (s *sqlTools) write(name, content string) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(filepath.Join(s.project, name), []byte(content), 0o600))
}

// call makes a call with arguments that a model wrote.
func (s *sqlTools) call(name string, arguments any) tool.Result {
	s.t.Helper()
	text, err := json.Marshal(arguments)
	require.NoError(s.t, err)
	report, err := s.run.Execute(context.WithoutCancel(s.t.Context()), executor.Batch{Session: s.session, Calls: []tool.Call{
		{ID: "test", Type: tool.FunctionCall, Function: tool.Function{Name: name, Arguments: string(text)}},
	}})
	require.NoError(s.t, err)
	return report.Records[0].Result
}

type object = map[string]any

// query returns the rows of a call that succeeds.
func (s *sqlTools) query(name string, arguments object) rows {
	s.t.Helper()
	result := s.call(name, arguments)
	require.True(s.t, result.Success, "%v: %s", arguments, result.Error)
	var got rows
	require.NoError(s.t, json.Unmarshal(result.Data, &got))
	return got
}

func (r rows) text() string {
	var lines []string
	for _, row := range r.Rows {
		var cells []string
		for _, cell := range row {
			cells = append(cells, string(cell))
		}
		lines = append(lines, strings.Join(cells, " "))
	}
	return strings.Join(lines, "\n")
}

// TestSQLToolsKeepTheirContracts: the tools accept the arguments of their contracts, and require no other ones.
func TestSQLToolsKeepTheirContracts(t *testing.T) {
	s := openSQL(t, "shop.db")
	s.write("prices.csv", "code,price\ntea,4.5\npot,29.95\n")
	assert.Equal(t, "240", s.query(toolname.DatabaseQuery, object{"sql": "SELECT count(*) FROM orders"}).text())
	schema := s.call(toolname.DataSchema, object{"knowledge_id": "prices.csv"})
	assert.JSONEq(t, `{"columns":[{"name":"code","type":"TEXT"},{"name":"price","type":"REAL"}],"row_count":2}`, string(schema.Data))
	assert.Equal(t, "34.45", s.query(toolname.DataAnalysis, object{"knowledge_id": "prices.csv", "sql": "SELECT sum(price) FROM data"}).text())
}

// TestSQLValues: every kind of value has the form that the README gives it.
func TestSQLValues(t *testing.T) {
	s := openSQL(t, "shop.db")
	want := map[string]string{
		"max": `9223372036854775807`, "min": `-9223372036854775808`, "zero": `0`, "half": `0.5`, "minus zero": `-0.0`, "tiny": `4.94065645841247e-324`,
		"huge": `1.7976931348623157e+308`, "third": `0.3333333333333333`, "infinity": `{"real":"Infinity"}`, "minus infinity": `{"real":"-Infinity"}`,
		"whole": `5.0`, "big whole": `1e+15`, "empty": `""`, "NUL": `"a\u0000b"`, "controls": `"\u0001\b\t\n\f\r\u001b\u007f"`, "quotes": `"\"\\/"`,
		"emoji": `"😀"`, "latin": `{"text":"caf\ufffd","bytes":4,"invalid_utf8":true}`, "cut": `{"text":"\ufffd\ufffd","bytes":2,"invalid_utf8":true}`,
		"surrogate": `{"text":"\ufffd\ufffd\ufffd","bytes":3,"invalid_utf8":true}`, "blob": `{"blob":"AP8=","bytes":2}`, "no bytes": `{"blob":"","bytes":0}`,
		"null": `null`, "line separators": "\"\u2028\u2029\ufeff\"",
	}
	got := s.query(toolname.DatabaseQuery, object{"sql": "SELECT what, value FROM odd"})
	assert.Len(t, got.Rows, len(want))
	for _, row := range got.Rows {
		var what string
		require.NoError(t, json.Unmarshal(row[0], &what))
		if strings.HasPrefix(want[what], `"`) || strings.HasPrefix(want[what], `{`) {
			assert.JSONEq(t, want[what], string(row[1]), what)
		} else {
			assert.Equal(t, want[what], string(row[1]), what)
		}
	}

	long := s.query(toolname.DatabaseQuery, object{"sql": "SELECT replace(hex(zeroblob(16384)), '00', 'aé'), zeroblob(40000), replace(hex(zeroblob(5461)), '00', 'äöü')"}).Rows[0]
	var text, cut, fits struct {
		Text, Blob string
		Bytes      int
	}
	require.NoError(t, json.Unmarshal(long[0], &text))
	assert.Equal(t, 3*16384, text.Bytes)
	assert.Equal(t, strings.Repeat("aé", 32*1024/3)+"a", text.Text, "it ends in a whole character")
	require.NoError(t, json.Unmarshal(long[1], &cut))
	blob, err := base64.StdEncoding.DecodeString(cut.Blob)
	require.NoError(t, err)
	assert.Equal(t, []int{40000, 32 * 1024}, []int{cut.Bytes, len(blob)})
	assert.Error(t, json.Unmarshal(long[2], &fits), "a text that fits is a string")
}

// TestSQLReadsOn: limit, offset and the bytes of a result lead through all rows, each once.
func TestSQLReadsOn(t *testing.T) {
	s := openSQL(t, "shop.db")
	for _, c := range []struct {
		sql   string
		limit int
		calls int
		rows  int
	}{
		{"SELECT id FROM orders ORDER BY id", 1000, 1, 240},
		{"SELECT id FROM orders ORDER BY id", 80, 3, 240},
		{"SELECT id FROM orders ORDER BY id", 79, 4, 240},
		{"SELECT id, hex(zeroblob(5000)) FROM orders ORDER BY id", 1000, 5, 240}, // 49 rows of 10,000 bytes are a result
		{"SELECT id FROM orders WHERE 0", 5, 1, 0},
	} {
		var ids []int
		calls := 0
		for offset := 0; ; calls++ {
			got := s.query(toolname.DatabaseQuery, object{"sql": c.sql, "limit": c.limit, "offset": offset})
			for _, row := range got.Rows {
				var id int
				require.NoError(t, json.Unmarshal(row[0], &id))
				ids = append(ids, id)
			}
			if !got.Truncated {
				break
			}
			require.Equal(t, offset+len(got.Rows), got.NextOffset)
			offset = got.NextOffset
		}
		assert.Equal(t, []int{c.calls, c.rows}, []int{calls + 1, len(ids)}, c.sql)
		assert.True(t, slices.IsSorted(ids))
		assert.Len(t, slices.Compact(ids), c.rows)
	}
	wide := s.call(toolname.DatabaseQuery, object{"sql": "SELECT " + strings.Repeat("hex(zeroblob(16000)), ", 20) + "1"})
	assert.Contains(t, wide.Error, "a row has more than 500000 bytes; select fewer columns")
}

// TestSQLParameters: values are bound and never become SQL.
func TestSQLParameters(t *testing.T) {
	s := openSQL(t, "shop.db", "hostile.db")
	for _, c := range []struct {
		sql    string
		params any
		want   string
	}{
		{"SELECT ?, ?2, ?", []any{1, "a"}, "the statement has 3 parameters, and params has 2 values"},
		{"SELECT ?, ?, ?, ?, ?", []any{nil, true, 1.5, int64(1) << 62, "' OR 1 --"}, `null 1 1.5 4611686018427387904 "' OR 1 --"`},
		{"SELECT :a, @a, $a, :b", object{"a": "x", "b": nil}, `"x" "x" "x" null`},
		{"SELECT :a", object{":a": 1}, "1"},
		{"SELECT :a", object{"b": 1}, "the statement has no parameter :b"},
		{"SELECT :a, :b", object{"a": 1}, "params has no value for :b"},
		{"SELECT ?", object{"a": 1}, "the statement has no parameter :a"},
		{"SELECT ?", nil, "the statement has 1 parameters; give their values in params"},
		{"SELECT 1", []any{1}, "the statement has 0 parameters, and params has 1 values"},
		{"SELECT sum(value) FROM json_each(?)", []any{[]int{1, 2, 3}}, "6"},
		{"SELECT ? ->> 'k'", []any{object{"k": "a\x00b\u2028é"}}, `"a\u0000b` + "\u2028" + `é"`},
	} {
		arguments := object{"database": "shop.db", "sql": c.sql}
		if c.params != nil {
			arguments["params"] = c.params
		}
		result := s.call(toolname.DatabaseQuery, arguments)
		if !result.Success {
			assert.Contains(t, result.Error, c.want, c.sql)
			continue
		}
		var got rows
		require.NoError(t, json.Unmarshal(result.Data, &got))
		assert.Equal(t, c.want, got.text(), c.sql)
	}
	// hostile.db has a table json_each, with which the arguments are not read.
	assert.Equal(t, "1", s.query(toolname.DatabaseQuery, object{"database": "hostile.db", "sql": "SELECT 1"}).text())
}

// TestSQLRandomNumbers: calls resume one program, and their random numbers are not the same.
func TestSQLRandomNumbers(t *testing.T) {
	s := openSQL(t, "shop.db")
	s.write("a.csv", "v\n1\n")
	seen := map[string]bool{}
	for range 10 {
		seen[s.query(toolname.DatabaseQuery, object{"sql": "SELECT random()"}).text()] = true
		seen[s.query(toolname.DataAnalysis, object{"knowledge_id": "a.csv", "sql": "SELECT random() FROM data"}).text()] = true
	}
	assert.Len(t, seen, 20)
}

// TestDatabaseWithLog: committed rows of a database in WAL mode are read from the log as well as from the database.
func TestDatabaseWithLog(t *testing.T) {
	s := openSQL(t, "log.db", "log.db-wal")
	read := object{"sql": "SELECT x FROM t", "database": "log.db"}
	assert.Equal(t, "\"checkpointed\"\n\"committed\"", s.query(toolname.DatabaseQuery, read).text())
	require.NoError(t, os.Remove(filepath.Join(s.project, "log.db-wal")))
	assert.Equal(t, `"checkpointed"`, s.query(toolname.DatabaseQuery, read).text(), "without its log")
	entries, err := os.ReadDir(s.project)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "no log or index was made")
}

// TestDatabaseWithJournal: pages of a transaction that did not end are not read. The control shows what would be.
func TestDatabaseWithJournal(t *testing.T) {
	s := openSQL(t, "journal.db", "journal.db-journal")
	read := object{"sql": "SELECT count(*) FROM t WHERE x LIKE 'not committed%'", "database": "journal.db"}
	refused := s.call(toolname.DatabaseQuery, read)
	assert.Contains(t, refused.Error, "journal.db has an unfinished transaction in journal.db-journal")
	require.NoError(t, os.Remove(filepath.Join(s.project, "journal.db-journal")))
	assert.NotEqual(t, "0", s.query(toolname.DatabaseQuery, read).text(), "control: nothing unfinished is in the file")
}

// TestFileThatChanges: a call fails if its file is changed while it is read.
func TestFileThatChanges(t *testing.T) {
	s := openSQL(t, "shop.db")
	s.write("a.csv", "v\n"+strings.Repeat("1\n", 1000))
	slow := "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 300000) SELECT sum(i), (SELECT count(*) FROM %s) FROM n"
	for name, arguments := range map[string]object{
		toolname.DatabaseQuery: {"database": "shop.db", "sql": fmt.Sprintf(slow, "orders")},
		toolname.DataAnalysis:  {"knowledge_id": "a.csv", "sql": fmt.Sprintf(slow, "data")},
	} {
		s.query(name, arguments) // the control: nothing writes
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for at := time.Now(); ; at = at.Add(time.Second) {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
					assert.NoError(t, os.Chtimes(filepath.Join(s.project, "shop.db"), at, at))
					assert.NoError(t, os.Chtimes(filepath.Join(s.project, "a.csv"), at, at))
				}
			}
		}()
		result := s.call(name, arguments)
		close(stop)
		<-stopped
		assert.Contains(t, result.Error, "was changed while it was read; call again", name)
	}
}
