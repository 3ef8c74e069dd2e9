//go:build sql

package tools_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/wasm-tools/internal/toolname"
)

// manyOrders are about 200 MB as a database and as CSV. Both have the same rows, by arithmetic.
const manyOrders = 2_250_000

const makeOrders = `WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < %d)
INSERT INTO data SELECT i, substr('northsoutheast west ', i %% 4 * 5 + 1, 5), 'product ' || (i * 7 %% 500), i * 7919 %% 100000 / 100.0, i * 31 %% 50,
date('2024-01-01', (i %% 366) || ' days'), 'note ' || (i * 104729 %% 1000003) || ', which somebody wrote about this order' FROM n`

func writeOrders(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	require.NoError(t, err)
	out := bufio.NewWriterSize(file, 1<<20)
	out.WriteString("id,region,product,amount,quantity,day,note\n")
	first := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	var days []string
	for i := range 366 {
		days = append(days, first.AddDate(0, 0, i).Format(time.DateOnly))
	}
	for i := 1; i <= manyOrders; i++ {
		cents := i * 7919 % 100000
		fmt.Fprintf(out, "%d,%s,product %d,%d.%02d,%d,%s,\"note %d, which somebody wrote about this order\"\n", i, "northsoutheast west "[i%4*5:i%4*5+5], i*7%500, cents/100, cents%100, i*31%50, days[i%366], i*104729%1000003)
	}
	require.NoError(t, out.Flush())
	require.NoError(t, file.Close())
}

// processorTime returns the processor time of this process, or of the processes that it waited for. On a busy machine
// that is the time that passes on an idle one.
func processorTime(t *testing.T, who int) time.Duration {
	t.Helper()
	var used syscall.Rusage
	require.NoError(t, syscall.Getrusage(who, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// Bounds of the tools' total time, as multiples of the native program's. A time in seconds would measure the machine:
// while it does other work, the slowest question takes half as long again.
const (
	mostTimesOfDatabase = 9
	mostTimesOfCSV      = 14
)

// TestNativeSizes: questions about 200 MB, in a database and as CSV, give what the native program gives, within some
// times its time.
func TestNativeSizes(t *testing.T) {
	found, err := registry.Directory("sql", nil).Manifests(t.Context())
	require.NoError(t, err)
	s := openSQLTools(t, found, 2*time.Minute)
	database := filepath.Join(s.project, "orders.db")
	made := native(t, database, "PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF",
		"CREATE TABLE data(id INTEGER, region TEXT, product TEXT, amount REAL, quantity INTEGER, day TEXT, note TEXT)", fmt.Sprintf(makeOrders, manyOrders))
	require.Empty(t, made[3].err)
	writeOrders(t, filepath.Join(s.project, "orders.csv"))
	var sizes []string
	for _, name := range []string{"orders.db", "orders.csv"} {
		info, err := os.Stat(filepath.Join(s.project, name))
		require.NoError(t, err)
		assert.Greater(t, info.Size(), int64(195_000_000))
		sizes = append(sizes, fmt.Sprintf("%d MB", info.Size()/1_000_000))
	}
	s.query(toolname.DatabaseQuery, object{"sql": "SELECT 1"}) // the module is compiled

	var table strings.Builder
	var sums [3]time.Duration // of the native program, of the database and of CSV
	fmt.Fprintf(&table, "| %s, %d rows | native | database_query | data_analysis |\n|---|---|---|---|\n", strings.Join(sizes, " and "), manyOrders)
	for _, sql := range []string{
		"SELECT count(*), sum(amount), avg(quantity) FROM data",
		"SELECT count(*), max(amount) FROM data WHERE note LIKE '%77%' AND amount > 500",
		"SELECT day, sum(amount * quantity) AS s FROM data WHERE region = 'north' GROUP BY day ORDER BY s DESC, day LIMIT 5",
		"SELECT region, product, count(*), sum(amount) FROM data GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 5",
		"SELECT * FROM data ORDER BY amount DESC, id LIMIT 3",
		"SELECT count(DISTINCT product) FROM data",
	} {
		start := processorTime(t, syscall.RUSAGE_CHILDREN)
		want := native(t, database, sql)[0]
		times := []time.Duration{processorTime(t, syscall.RUSAGE_CHILDREN) - start}
		for _, call := range []struct {
			name      string
			arguments object
		}{{toolname.DatabaseQuery, object{"sql": sql, "database": "orders.db"}}, {toolname.DataAnalysis, object{"sql": sql, "knowledge_id": "orders.csv"}}} {
			start := processorTime(t, syscall.RUSAGE_SELF)
			got := s.query(call.name, call.arguments)
			took := processorTime(t, syscall.RUSAGE_SELF) - start
			times = append(times, took)
			require.Len(t, got.Rows, len(want.rows), sql)
			for r, row := range want.rows {
				for k, cell := range row {
					assert.Empty(t, differs(t, cell, got.Rows[r][k]), "%s: %s", call.name, sql)
				}
			}
		}
		for i, took := range times {
			sums[i] += took
		}
		fmt.Fprintf(&table, "| `%s` | %.1f s | %.1f s | %.1f s |\n", sql, times[0].Seconds(), times[1].Seconds(), times[2].Seconds())
	}
	start := processorTime(t, syscall.RUSAGE_SELF)
	schema := s.call(toolname.DataSchema, object{"knowledge_id": "orders.csv"})
	assert.Contains(t, string(schema.Data), fmt.Sprintf(`"row_count":%d`, manyOrders), schema.Error)
	assert.Less(t, sums[1], mostTimesOfDatabase*sums[0], "database")
	assert.Less(t, sums[2], mostTimesOfCSV*sums[0], "CSV")
	t.Logf("\n%s\ndata_schema: %.1f s", table.String(), (processorTime(t, syscall.RUSAGE_SELF) - start).Seconds())
}
