//go:build sql

package tools_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/wasm-tools/internal/toolname"
)

var (
	nativeProgram = flag.String("native", "", "testdata/native.c of the folder sql as a `program`, with the same SQLite")
	rebuiltModule = flag.String("rebuilt", "", "the `file` that guest/build.sh of the folder sql has just built")
)

// answer is the native program's output for a statement.
type answer struct {
	columns []string
	rows    [][]string
	err     string
}

// native runs statements on a database.
func native(t *testing.T, database string, statements ...string) []answer {
	t.Helper()
	command := exec.CommandContext(t.Context(), *nativeProgram, database)
	command.Stdin = strings.NewReader(strings.Join(statements, "\x00") + "\x00")
	out, err := command.Output()
	require.NoError(t, err, "the program comes from make sql")
	var all []answer
	var current answer
	for line := range strings.Lines(string(out)) {
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch word {
		case "columns":
			current.columns = strings.Fields(rest)
		case "row":
			current.rows = append(current.rows, strings.Fields(rest))
		case "ok", "error":
			current.err = rest
			all = append(all, current)
			current = answer{}
		}
	}
	require.Len(t, all, len(statements))
	return all
}

// statements are those of testdata/statements.txt.
func statements(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("sql", "testdata", "statements.txt"))
	require.NoError(t, err)
	var all []string
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}

// TestNativeStatements: for each statement, the tool's answer is that of SQLite's native program.
func TestNativeStatements(t *testing.T) {
	found, err := registry.Directory("sql", nil).Manifests(t.Context())
	require.NoError(t, err)
	agree(t, found)
}

func agree(t *testing.T, found []registry.Found) {
	t.Helper()
	s := openSQLTools(t, found, 2*time.Minute, "shop.db")
	copied := filepath.Join(t.TempDir(), "shop.db")
	content, err := os.ReadFile(filepath.Join(s.project, "shop.db"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, content, 0o600))
	all := statements(t)
	succeeded := 0
	for i, want := range native(t, copied, all...) {
		sql := all[i]
		result := s.call(toolname.DatabaseQuery, object{"sql": sql, "limit": 1000})
		if want.err != "" {
			assert.Contains(t, result.Error, want.err, sql)
			continue
		}
		if !assert.True(t, result.Success, "%s: %s", sql, result.Error) {
			continue
		}
		succeeded++
		var got rows
		require.NoError(t, json.Unmarshal(result.Data, &got))
		for k, column := range want.columns {
			assert.Equal(t, string(unhex(t, column)), got.Columns[k], sql)
		}
		if !assert.Len(t, got.Rows, len(want.rows), sql) {
			continue
		}
		for r, row := range want.rows {
			require.Len(t, got.Rows[r], len(row), sql)
			for k, cell := range row {
				if problem := differs(t, cell, got.Rows[r][k]); problem != "" {
					t.Errorf("%s: row %d, column %d: %s", sql, r+1, k+1, problem)
				}
			}
		}
	}
	t.Logf("%d statements agree, of which %d fail in both", len(all), len(all)-succeeded)
	assert.Greater(t, succeeded, 250)
}

func unhex(t *testing.T, cell string) []byte {
	t.Helper()
	decoded, err := hex.DecodeString(cell[1:])
	require.NoError(t, err)
	return decoded
}

// differs compares a value of the native program's with one of the tool's, and returns how they differ.
func differs(t *testing.T, want string, got json.RawMessage) string {
	t.Helper()
	text := string(got)
	switch want[0] {
	case 'n':
		if text != "null" {
			return "want NULL, got " + text
		}
	case 'i':
		if text != want[1:] {
			return "want " + want[1:] + ", got " + text
		}
	case 'r':
		number, err := strconv.ParseFloat(want[1:], 64)
		require.NoError(t, err)
		if math.IsInf(number, 0) {
			if text != fmt.Sprintf(`{"real":"%sInfinity"}`, map[bool]string{true: "-"}[number < 0]) {
				return "want an infinity, got " + text
			}
			return ""
		}
		ours, err := strconv.ParseFloat(text, 64)
		// The last digits of functions are the C library's.
		if err != nil || !strings.ContainsAny(text, ".e") || math.Abs(ours-number) > 4e-16*math.Abs(number) {
			return "want the real " + want[1:] + ", got " + text
		}
	case 't':
		bytes := unhex(t, want)
		expected := any(string(bytes))
		if !utf8.Valid(bytes) {
			expected = map[string]any{"text": strings.ToValidUTF8(replaceEach(bytes), "\ufffd"), "bytes": float64(len(bytes)), "invalid_utf8": true}
		} else if len(bytes) > 32*1024 {
			return ""
		}
		var ours any
		require.NoError(t, json.Unmarshal(got, &ours))
		if !assert.ObjectsAreEqual(expected, ours) {
			return fmt.Sprintf("want the text %q, got %s", bytes, text)
		}
	case 'b':
		bytes := unhex(t, want)
		var ours struct {
			Blob  []byte
			Bytes int
		}
		require.NoError(t, json.Unmarshal(got, &ours), text)
		if len(bytes) <= 32*1024 && string(ours.Blob) != string(bytes) || ours.Bytes != len(bytes) {
			return fmt.Sprintf("want the blob %x, got %s", bytes, text)
		}
	}
	return ""
}

// replaceEach puts U+FFFD in the place of each byte that is not UTF-8.
func replaceEach(text []byte) string {
	var out strings.Builder
	for _, r := range string(text) {
		out.WriteRune(r)
	}
	return out.String()
}

// TestNativeModuleIsWhatItsSourcesAre: with the compiler that build.sh names, the sources build to exactly the bytes of
// the committed module. The module of another compiler behaves the same.
func TestNativeModuleIsWhatItsSourcesAre(t *testing.T) {
	committed, err := os.ReadFile(filepath.Join("sql", "guest", "sql.wasm"))
	require.NoError(t, err)
	rebuilt, err := os.ReadFile(*rebuiltModule)
	require.NoError(t, err, "the module comes from make sql")
	if bytes.Equal(committed, rebuilt) {
		return
	}
	compiler, err := exec.CommandContext(t.Context(), "clang-22", "--version").Output()
	require.NoError(t, err)
	script, err := os.ReadFile(filepath.Join("sql", "guest", "build.sh"))
	require.NoError(t, err)
	version, _, _ := strings.Cut(strings.TrimPrefix(string(compiler), "Debian clang version "), " ")
	require.NotContains(t, string(script), "clang-22 1:"+version+"-", "the compiler is that of build.sh, and the module is another")

	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("sql")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "guest", "sql.wasm"), rebuilt, 0o600))
	found, err := registry.Directory(dir, nil).Manifests(t.Context())
	require.NoError(t, err)
	agree(t, found)
}

// TestNativeFixtures: the databases of testdata are what their statements make.
func TestNativeFixtures(t *testing.T) {
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), filepath.Join("sql", "testdata", "fixtures.sh"), dir)
	command.Env = append(os.Environ(), "NATIVE="+*nativeProgram)
	out, err := command.CombinedOutput()
	require.NoError(t, err, string(out))
	for _, name := range []string{"shop.db", "hostile.db"} { // logs and journals have random numbers
		made, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		committed, err := os.ReadFile(filepath.Join("sql", "testdata", name))
		require.NoError(t, err)
		assert.True(t, bytes.Equal(made, committed), name)
	}
}

// TestNativeWrites is the control of TestAttackSQLWrites: if they are not refused, these statements write.
func TestNativeWrites(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("sql", "testdata", "shop.db"))
	require.NoError(t, err)
	wrote := 0
	for sql := range writes {
		dir := t.TempDir()
		database := filepath.Join(dir, "shop.db")
		require.NoError(t, os.WriteFile(database, content, 0o600))
		native(t, database, strings.ReplaceAll(sql, "/project", dir))
		if after := snapshotOf(t, dir); len(after) > 1 || after["shop.db"] != string(content) {
			wrote++
		}
	}
	t.Logf("%d of %d statements write", wrote, len(writes))
	assert.Greater(t, wrote, 20)
}

// TestNativeVariants: databases of all page sizes, encodings and journal modes are read alike.
func TestNativeVariants(t *testing.T) {
	s := openSQL(t)
	content, err := os.ReadFile(filepath.Join("sql", "testdata", "shop.sql"))
	require.NoError(t, err)
	var make []string
	for line := range strings.Lines(string(content)) {
		if !strings.HasPrefix(line, "--") && !strings.HasPrefix(line, "PRAGMA") {
			make = append(make, line)
		}
	}
	ask := []string{"SELECT * FROM totals ORDER BY id", "SELECT * FROM odd WHERE what NOT IN ('latin', 'cut', 'surrogate')", "SELECT title FROM notes WHERE notes MATCH 'tea'", "PRAGMA integrity_check"}
	for i, settings := range [][]string{
		{"PRAGMA page_size = 512"}, {"PRAGMA page_size = 65536"}, {"PRAGMA encoding = 'UTF-16le'"}, {"PRAGMA encoding = 'UTF-16be'"}, {"PRAGMA auto_vacuum = FULL"},
		{"PRAGMA auto_vacuum = INCREMENTAL", "PRAGMA page_size = 2048"}, {"PRAGMA journal_mode = WAL"}, {"PRAGMA journal_mode = PERSIST"}, {"PRAGMA journal_mode = TRUNCATE"},
		{"PRAGMA legacy_file_format = ON"}, {"PRAGMA secure_delete = ON"},
	} {
		name := fmt.Sprintf("variant%d.db", i)
		database := filepath.Join(s.project, name)
		for k, made := range native(t, database, append(settings, make...)...) {
			require.Empty(t, made.err, "%v: %d", settings, k)
		}
		for k, want := range native(t, database, ask...) {
			got := s.query(toolname.DatabaseQuery, object{"sql": ask[k], "database": name})
			require.Len(t, got.Rows, len(want.rows), settings)
			for r, row := range want.rows {
				for c, cell := range row {
					assert.Empty(t, differs(t, cell, got.Rows[r][c]), "%v: %s", settings, ask[k])
				}
			}
		}
	}
}
