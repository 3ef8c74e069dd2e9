package tools_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
	"github.com/caisson-run/caisson/wasm-tools/internal/toolname"
)

// writes are statements that change a database, a file or the connection, with what the tool says of each.
var writes = map[string]string{
	"INSERT INTO customers(name) VALUES ('x')":                                                           "INSERT is not allowed",
	"INSERT INTO customers(id, name) VALUES (1, 'x') ON CONFLICT(id) DO UPDATE SET name = excluded.name": "INSERT is not allowed",
	"INSERT INTO customers(name) VALUES ('x') RETURNING id":                                              "INSERT is not allowed",
	"REPLACE INTO customers(id, name) VALUES (1, 'x')":                                                   "INSERT is not allowed",
	"WITH x AS (SELECT 1) INSERT INTO customers(id, name) SELECT 99, 'x' FROM x":                         "INSERT is not allowed",
	"/* SELECT */ UPDATE customers SET name = 'x'":                                                       "UPDATE is not allowed",
	"WITH x AS (SELECT 1) DELETE FROM orders":                                                            "DELETE is not allowed",
	"EXPLAIN DELETE FROM orders":                                                                         "DELETE is not allowed",
	"DELETE FROM sqlite_schema":                                                                          "table sqlite_master may not be modified; this tool only reads",
	"UPDATE orders_by_customer SET x = 1":                                                                "no such table",
	"UPDATE notes SET body = 'x'":                                                                        "UPDATE is not allowed",
	"INSERT INTO notes(notes) VALUES ('rebuild')":                                                        "INSERT is not allowed",
	"INSERT INTO notes_data VALUES (1, 'x')":                                                             "this tool only reads",
	"CREATE TABLE x(y)":                                                                                  "changing the schema is not allowed",
	"CREATE TEMP TABLE x(y)":                                                                             "changing the schema is not allowed",
	"CREATE TABLE x AS SELECT 1":                                                                         "changing the schema is not allowed",
	"CREATE VIEW x AS SELECT 1":                                                                          "changing the schema is not allowed",
	"CREATE INDEX x ON orders(id)":                                                                       "changing the schema is not allowed",
	"CREATE TRIGGER x AFTER INSERT ON orders BEGIN SELECT 1; END":                                        "changing the schema is not allowed",
	"CREATE VIRTUAL TABLE x USING fts5(y)":                                                               "changing the schema is not allowed",
	"DROP TABLE orders":                                                                                  "changing the schema is not allowed",
	"DROP VIEW totals":                                                                                   "changing the schema is not allowed",
	"ALTER TABLE orders RENAME TO x":                                                                     "is not allowed",
	"ALTER TABLE orders ADD COLUMN x":                                                                    "is not allowed",
	"BEGIN":                                                                                              "a transaction is not allowed",
	"BEGIN EXCLUSIVE":                                                                                    "a transaction is not allowed",
	"SAVEPOINT x":                                                                                        "SAVEPOINT is not allowed",
	"ATTACH '/project/new.db' AS x":                                                                      "ATTACH is not allowed",
	"ATTACH ':memory:' AS x":                                                                             "ATTACH is not allowed",
	"DETACH main":                                                                                        "DETACH is not allowed",
	"VACUUM":                                                                                             "not allowed",
	"VACUUM INTO '/project/new.db'":                                                                      "not allowed",
	"ANALYZE":                                                                                            "is not allowed",
	"REINDEX":                                                                                            "is not allowed",
	"PRAGMA user_version = 5":                                                                            "PRAGMA user_version with a value is not allowed",
	"PRAGMA application_id(5)":                                                                           "PRAGMA application_id with a value is not allowed",
	"PRAGMA journal_mode = DELETE":                                                                       "PRAGMA journal_mode with a value is not allowed",
	"PRAGMA query_only = OFF":                                                                            "PRAGMA query_only with a value is not allowed",
	"PRAGMA writable_schema = ON":                                                                        "PRAGMA writable_schema with a value is not allowed",
	"PRAGMA trusted_schema = ON":                                                                         "PRAGMA trusted_schema with a value is not allowed",
	"PRAGMA temp_store_directory = '/project'":                                                           "is not allowed",
	"PRAGMA wal_checkpoint":                                                                              "PRAGMA wal_checkpoint is not allowed",
	"PRAGMA optimize":                                                                                    "PRAGMA optimize is not allowed",
	"PRAGMA incremental_vacuum":                                                                          "PRAGMA incremental_vacuum is not allowed",
	"SELECT * FROM pragma_wal_checkpoint":                                                                "no such table",
	"SELECT load_extension('/project/x.so')":                                                             "no such function: load_extension",
	"SELECT writefile('/project/new', 'x')":                                                              "no such function: writefile",
	"SELECT readfile('/project/shop.db')":                                                                "no such function: readfile",
	"SELECT edit('x')":                                                                                   "no such function: edit",
	"COMMIT":                                                                                             "a transaction is not allowed",
	"SELECT 1; DELETE FROM orders":                                                                       "sql has more than one statement",
	"SELECT 1; nonsense":                                                                                 "sql has more than one statement",
	"-- nothing":                                                                                         "sql is empty",
	";":                                                                                                  "sql is empty",
}

// snapshotOf returns the files below a directory with their content.
func snapshotOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		files[name] = string(content)
		return err
	}))
	return files
}

// TestAttackSQLWrites: no statement changes a file, and each is refused with a reason. TestNativeWrites (make sql)
// shows that these statements write if they are not refused.
func TestAttackSQLWrites(t *testing.T) {
	s := openSQL(t, "shop.db", "log.db", "log.db-wal")
	s.write("a.csv", "v\n1\n")
	before := snapshotOf(t, s.project)
	for sql, want := range writes {
		result := s.call(toolname.DatabaseQuery, object{"sql": sql, "database": "shop.db"})
		assert.Equal(t, tool.ToolFailed, result.Kind, sql)
		assert.Contains(t, result.Error, want, sql)
		for name, arguments := range map[string]object{
			toolname.DatabaseQuery: {"sql": sql, "database": "log.db"},
			toolname.DataAnalysis:  {"sql": strings.NewReplacer("customers", "data", "orders", "data").Replace(sql), "knowledge_id": "a.csv"},
		} {
			assert.False(t, s.call(name, arguments).Success, sql)
		}
	}
	assert.Equal(t, before, snapshotOf(t, s.project))
}

// TestAttackSQLPaths: neither tool reads a file outside of the project, however it is named.
func TestAttackSQLPaths(t *testing.T) {
	s := openSQL(t, "shop.db")
	outside := filepath.Join(filepath.Dir(s.project), "outside.db")
	content, err := os.ReadFile(filepath.Join("sql", "testdata", "shop.db"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(outside, content, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(s.project), "outside.csv"), []byte("v\n1\n"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(s.project, "link.db")))
	require.NoError(t, os.Mkdir(filepath.Join(s.project, "folder.db"), 0o700))
	for _, name := range []string{
		"../outside.db", "/outside.db", outside, "a/../../outside.db", "link.db", "file:shop.db?mode=rwc", "file:/project/shop.db", ":memory:", "folder.db", "/", ".",
		"shop.db/", "shop.db/x", "no\nsuch.db", strings.Repeat("a/", 2000) + "b",
	} {
		result := s.call(toolname.DatabaseQuery, object{"sql": "SELECT 1", "database": name})
		if name == "shop.db/" {
			assert.True(t, result.Success, "the tool reads the path without its slash: %s", result.Error)
			continue
		}
		assert.False(t, result.Success, name)
		assert.Contains(t, []tool.Kind{tool.ToolFailed, tool.Denied}, result.Kind, "%s: %s", name, result.Error)
	}
	for _, name := range []string{"../outside.csv", "/outside.csv", "a/../../outside.csv"} {
		assert.Equal(t, tool.Denied, s.call(toolname.DataSchema, object{"knowledge_id": name}).Kind, name)
		assert.Equal(t, tool.Denied, s.call(toolname.DataAnalysis, object{"knowledge_id": name, "sql": "SELECT 1"}).Kind, name)
	}
	// Only a name says ":memory:" to SQLite.
	assert.Contains(t, s.call(toolname.DatabaseQuery, object{"sql": "SELECT 1", "database": ":memory:"}).Error, "there is no such file")
}

// TestAttackSQLResources: a statement that never ends, or that wants more than there is, ends with the reason, and
// the next call is fine.
func TestAttackSQLResources(t *testing.T) {
	found, err := registry.Directory("sql", nil).Manifests(t.Context())
	require.NoError(t, err)
	hurried := openSQLTools(t, found, 200*time.Millisecond, "shop.db", "hostile.db")
	s := openSQL(t, "shop.db", "hostile.db")
	const endless = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) "
	manyTables := func(n int) string {
		sql := "WITH c0 AS (SELECT 1)"
		for i := range n - 1 {
			sql += fmt.Sprintf(",c%d AS (SELECT * FROM c%d)", i+1, i)
		}
		return fmt.Sprintf("%s SELECT * FROM c%d", sql, n-1)
	}
	deep := func(open, shut string, n int) string {
		return "SELECT " + strings.Repeat(open, n) + "1" + strings.Repeat(shut, n)
	}
	attacks := []struct {
		sql   string
		kinds []tool.Kind
		want  string
	}{
		{endless + "SELECT count(*) FROM n", []tool.Kind{tool.Deadline}, ""},
		{endless + "SELECT i FROM n WHERE i < 0", []tool.Kind{tool.Deadline}, ""},
		{endless + "SELECT count(*) FROM n a, n b, n c", []tool.Kind{tool.Deadline, tool.ToolFailed}, ""},
		{endless + "SELECT i FROM n ORDER BY i", []tool.Kind{tool.Deadline, tool.ToolFailed}, ""},
		{"SELECT count(*) FROM orders a, orders b, orders c, orders d", []tool.Kind{tool.Deadline}, ""},
		{endless + "SELECT length(randomblob(1000000)) FROM n WHERE i < 0", []tool.Kind{tool.Deadline}, ""},
		{endless + "SELECT sum(length(randomblob(i))) FROM n", []tool.Kind{tool.Deadline, tool.ToolFailed}, ""},
		{"SELECT n FROM forever", []tool.Kind{tool.Deadline}, ""},
		{"SELECT zeroblob(1000000000)", []tool.Kind{tool.ToolFailed}, "larger than 32 MiB"},
		{"SELECT length(zeroblob(1000000000))", []tool.Kind{tool.ToolFailed}, "larger than 32 MiB"},
		{"SELECT hex(zeroblob(20000000))", []tool.Kind{tool.ToolFailed}, "larger than 32 MiB"},
		{"SELECT printf('%2000000000d', 1)", []tool.Kind{""}, ""},
		{"SELECT replace(hex(zeroblob(100000)), '0', hex(zeroblob(100000)))", []tool.Kind{tool.ToolFailed}, "larger than 32 MiB"},
		{"SELECT group_concat(hex(zeroblob(100000)), '') FROM orders a, orders b", []tool.Kind{tool.ToolFailed, tool.Deadline}, ""},
		{"SELECT json_group_array(zeroblob(1000)) FROM orders", []tool.Kind{tool.ToolFailed}, "JSON cannot hold BLOB values"},
		{"WITH RECURSIVE d(s) AS (VALUES ('x') UNION ALL SELECT s || s FROM d) SELECT max(length(s)) FROM d", []tool.Kind{tool.ToolFailed}, "out of memory: "},
		{"SELECT b FROM generated", []tool.Kind{tool.ToolFailed}, "larger than 32 MiB"},
		{"SELECT x FROM huge", []tool.Kind{tool.ToolFailed}, "larger than 32 MiB"},
		{"SELECT '" + strings.Repeat("a", 40000) + "' LIKE '" + strings.Repeat("%a", 10000) + "b'", []tool.Kind{tool.ToolFailed}, "LIKE or GLOB pattern too complex"},
		{"SELECT hex(zeroblob(50000)) LIKE '" + strings.Repeat("%0", 400) + "x'", []tool.Kind{"", tool.Deadline}, ""},
		{"SELECT hex(zeroblob(50000)) GLOB '" + strings.Repeat("*0", 400) + "x'", []tool.Kind{"", tool.Deadline}, ""},
		{deep("(", ")", 40000), []tool.Kind{tool.ToolFailed}, "sql is too deep"},
		{deep("(", ")", 490), []tool.Kind{""}, ""},
		{deep("- ", "", 45000), []tool.Kind{tool.ToolFailed}, "maximum depth 1000"},
		{deep("abs(", ")", 10000), []tool.Kind{tool.ToolFailed}, "sql is too deep"},
		{deep("NOT ", "", 20000), []tool.Kind{tool.ToolFailed}, "maximum depth 1000"},
		{deep("CASE WHEN 1 THEN ", " END", 4000), []tool.Kind{tool.ToolFailed}, "maximum depth 1000"},
		{deep("(SELECT ", ")", 9000), []tool.Kind{tool.ToolFailed}, "sql is too deep"},
		{deep("(SELECT ", ")", 20), []tool.Kind{""}, ""},
		{"SELECT 1" + strings.Repeat("+1", 40000), []tool.Kind{tool.ToolFailed}, "maximum depth 1000"},
		{"SELECT 1 WHERE 1" + strings.Repeat(" OR 1", 15000), []tool.Kind{tool.ToolFailed}, "maximum depth 1000"},
		{"SELECT 1" + strings.Repeat(" UNION SELECT 1", 6000), []tool.Kind{tool.ToolFailed}, "sql is too deep"},
		{"SELECT " + strings.Repeat("1,", 3000) + "1", []tool.Kind{tool.ToolFailed}, "too many columns"},
		{"SELECT 1 FROM " + strings.Repeat("orders,", 100) + "orders", []tool.Kind{tool.ToolFailed}, "at most 64 tables in a join"},
		{"SELECT 1 FROM " + strings.Repeat("(orders JOIN ", 499) + "orders" + strings.Repeat(")", 499), []tool.Kind{tool.ToolFailed}, ""},
		{strings.Repeat("SELECT * FROM (", 6000) + "SELECT 1" + strings.Repeat(")", 6000), []tool.Kind{tool.ToolFailed}, "sql is too deep"},
		{strings.Repeat("SELECT * FROM (", 499) + "SELECT 1" + strings.Repeat(")", 499), []tool.Kind{""}, ""},
		{manyTables(499), []tool.Kind{""}, ""},
		{manyTables(3000), []tool.Kind{tool.ToolFailed}, "sql is too deep"},
		{"SELECT * FROM deep", []tool.Kind{tool.Trap}, "the database has views that are deep"},
		{"SELECT json_extract('" + strings.Repeat("[", 45000) + strings.Repeat("]", 45000) + "', '$[0]')", []tool.Kind{tool.ToolFailed}, "malformed JSON"},
		{"SELECT count(*) FROM json_tree('" + strings.Repeat("[", 900) + strings.Repeat("]", 900) + "')", []tool.Kind{""}, ""},
		{"SELECT * FROM itself", []tool.Kind{tool.ToolFailed}, "view itself is circularly defined"},
		{"SELECT * FROM one", []tool.Kind{tool.ToolFailed}, "is circularly defined"},
		{"SELECT * FROM loads", []tool.Kind{tool.ToolFailed}, "no such function: load_extension"},
		{"SELECT * FROM writes", []tool.Kind{tool.ToolFailed}, "no such function: writefile"},
		{"SELECT * FROM dump", []tool.Kind{tool.ToolFailed}, "no such module: sqlite_dbpage"},
		{"SELECT * FROM unknown", []tool.Kind{tool.ToolFailed}, "no such module"},
		{"SELECT * FROM csv", []tool.Kind{tool.ToolFailed}, "no such module: data"},
		{"SELECT * FROM words WHERE words MATCH 'one'", []tool.Kind{tool.ToolFailed}, "hostile.db is damaged"},
		{"SELECT median(x.id), percentile(x.id, 101) FROM orders x", []tool.Kind{tool.ToolFailed}, "a number from 0 to 100"},
		{"SELECT percentile(id, id % 3) FROM orders", []tool.Kind{tool.ToolFailed}, "the same for all rows"},
	}
	for _, a := range attacks {
		database := "hostile.db"
		if strings.Contains(a.sql, "orders") {
			database = "shop.db"
		}
		use := s
		if slices.Contains(a.kinds, tool.Deadline) {
			use = hurried
		}
		start := time.Now()
		result := use.call(toolname.DatabaseQuery, object{"sql": a.sql, "database": database})
		name := a.sql[:min(len(a.sql), 80)]
		assert.Contains(t, a.kinds, result.Kind, "%s: %s", name, result.Error)
		assert.Equal(t, result.Success, result.Error == "", name)
		if result.Kind != tool.Deadline {
			assert.Contains(t, result.Error, a.want, name)
		}
		assert.Less(t, time.Since(start), 20*time.Second, name)
	}
	for _, use := range []*sqlTools{s, hurried} {
		assert.Equal(t, "240", use.query(toolname.DatabaseQuery, object{"sql": "SELECT count(*) FROM orders", "database": "shop.db"}).text())
	}
}

// TestAttackSQLMemory: rows that do not fit to be sorted are a failure with words, at the limit that the tool has.
func TestAttackSQLMemory(t *testing.T) {
	s := openSQL(t, "shop.db")
	const many = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 10000) "
	for _, sql := range testsize.Sample([]string{
		many + "SELECT i FROM n ORDER BY zeroblob(30000)",
		many + "SELECT count(*) FROM n GROUP BY randomblob(30000)",
		many + "SELECT DISTINCT randomblob(30000) FROM n LIMIT 1 OFFSET 9000",
		many + "SELECT count(*) FROM (SELECT randomblob(30000) AS b FROM n UNION SELECT x'00')",
		many + "SELECT group_concat(hex(randomblob(9000)), '') FROM n",
	}, 2) {
		result := s.call(toolname.DatabaseQuery, object{"sql": sql})
		assert.Equal(t, tool.ToolFailed, result.Kind, "%s: %s", sql, result.Error)
		assert.Regexp(t, "^out of memory: |larger than 32 MiB", result.Error, sql)
	}
	fits := s.query(toolname.DatabaseQuery, object{"sql": many + "SELECT count(*) FROM (SELECT i FROM n ORDER BY zeroblob(3000))"})
	assert.Equal(t, "10000", fits.text(), "control: ten times less fits")
}

// TestAttackDamagedDatabases: no damage of a database ends in a trap, and none outlives its call.
func TestAttackDamagedDatabases(t *testing.T) {
	found, err := registry.Directory("sql", nil).Manifests(t.Context())
	require.NoError(t, err)
	s := openSQLTools(t, found, 5*time.Second, "shop.db")
	whole, err := os.ReadFile(filepath.Join("sql", "testdata", "shop.db"))
	require.NoError(t, err)
	log, err := os.ReadFile(filepath.Join("sql", "testdata", "log.db-wal"))
	require.NoError(t, err)
	logged, err := os.ReadFile(filepath.Join("sql", "testdata", "log.db"))
	require.NoError(t, err)
	queries := []string{
		"SELECT * FROM orders ORDER BY ordered", "SELECT count(*) FROM orders o JOIN customers c ON o.customer = c.id", "SELECT * FROM notes WHERE notes MATCH 'tea'",
		"SELECT * FROM odd", "PRAGMA integrity_check", "SELECT name, sql FROM sqlite_schema", "SELECT * FROM totals", "SELECT max(id) FROM orders",
		"SELECT * FROM customers WHERE length(name) = 3", "SELECT json_extract(body, '$.at.y') FROM events", "SELECT * FROM computed", "PRAGMA table_info(orders)",
	}
	const page = 1024
	start := func(at int) int { return max(at, 100) } // the first page begins with the database's header
	random := rand.New(rand.NewPCG(5, 6))
	failed := map[tool.Kind]int{}
	for i := range testsize.Of(400, 20000) {
		damaged := bytes.Clone(whole)
		at := random.IntN(len(damaged)/page) * page
		switch i % 8 {
		case 0: // some bytes anywhere
			for range 1 + random.IntN(30) {
				damaged[100+random.IntN(len(damaged)-100)] = byte(random.IntN(256))
			}
		case 1: // the header of a page: its type, its cells, its free blocks
			for range 1 + random.IntN(4) {
				damaged[start(at)+random.IntN(12)] = byte(random.IntN(256))
			}
		case 2: // the offsets of cells
			for range 1 + random.IntN(6) {
				binary.BigEndian.PutUint16(damaged[start(at)+8+2*random.IntN(20):], uint16(random.IntN(2*page)))
			}
		case 3: // a page of noise
			for k := start(at); k < at+page; k++ {
				damaged[k] = byte(random.IntN(256))
			}
		case 4: // one page in another's place, so that trees have cycles
			other := random.IntN(len(damaged)/page) * page
			copy(damaged[start(at):at+page], whole[other+start(at)-at:])
		case 5: // an end that is missing
			damaged = damaged[:random.IntN(len(damaged))]
		case 6: // the header of the database
			for range 1 + random.IntN(4) {
				damaged[16+random.IntN(84)] = byte(random.IntN(256))
			}
		case 7: // the text of the schema
			text := bytes.Index(damaged, []byte("CREATE"))
			for range 1 + random.IntN(10) {
				damaged[text+random.IntN(3*page)] = " ()',\"0aA\x00\xff"[random.IntN(11)]
			}
		}
		sql := queries[random.IntN(len(queries))]
		name := "damaged.db"
		if i%16 == 15 { // a log instead
			damaged, name, sql = bytes.Clone(logged), "logged.db", "SELECT * FROM t"
			hurt := bytes.Clone(log)
			for range 1 + random.IntN(10) {
				hurt[random.IntN(len(hurt))] = byte(random.IntN(256))
			}
			s.write("logged.db-wal", string(hurt))
		}
		s.write(name, string(damaged))
		result := s.call(toolname.DatabaseQuery, object{"sql": sql, "database": name})
		if result.Success {
			failed[""]++
			continue
		}
		failed[result.Kind]++
		if !slices.Contains([]tool.Kind{tool.ToolFailed, tool.Deadline}, result.Kind) || result.Error == "" {
			kept := filepath.Join(os.TempDir(), fmt.Sprintf("damaged-%d.db", i))
			require.NoError(t, os.WriteFile(kept, damaged, 0o600))
			t.Errorf("%s: %s: %s; the database is in %s", sql, result.Kind, result.Error, kept)
		}
	}
	assert.Greater(t, failed[tool.ToolFailed], failed[""]/4, "control: the damage is noticed: %v", failed)
	assert.Equal(t, "240", s.query(toolname.DatabaseQuery, object{"sql": "SELECT count(*) FROM orders", "database": "shop.db"}).text())
}

// TestAttackDamagedFiles: bytes that are no CSV and no JSON are read or refused, and never end in a trap.
func TestAttackDamagedFiles(t *testing.T) {
	s := openSQL(t)
	random := rand.New(rand.NewPCG(7, 8))
	alphabet := []byte("\"\"\",,;\t\n\r\r\n{}[]:\\u00e9tfn1e-+. a\x00\xff\xef\xbb\xbf")
	seeds := []string{"a,b\n1,\"x\"\"y\"\n", "{\"a\":[1,{\"b\":\"\\u00e9\"}],\"c\":-1.5e3}\n", "a\tb\n\n1\t2\r\n"}
	for i := range testsize.Of(150, 5000) {
		content := []byte(strings.Repeat(seeds[i%3], random.IntN(8)))
		for range random.IntN(30) {
			at := random.IntN(len(content) + 1)
			content = slices.Insert(content, at, alphabet[random.IntN(len(alphabet))])
		}
		format := []string{"csv", "tsv", "jsonl"}[random.IntN(3)]
		s.write("x", string(content))
		schema := s.call(toolname.DataSchema, object{"knowledge_id": "x", "format": format, "header": random.IntN(2) == 0})
		analysis := s.call(toolname.DataAnalysis, object{"knowledge_id": "x", "format": format, "sql": "SELECT *, count(*) FROM data GROUP BY 1"})
		for _, result := range []tool.Result{schema, analysis} {
			if !result.Success && (result.Kind != tool.ToolFailed || result.Error == "") {
				t.Errorf("%s of %q: %s: %s", format, content, result.Kind, result.Error)
			}
		}
	}
}
