package benchmark

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/internal/modules"
)

// Text returns the report as tables for people to read.
func (r *Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s, %d processors, %s. Only ratios carry over to another machine.\n",
		r.Machine.OS, r.Machine.Arch, r.Machine.Processors, r.Machine.Go)
	r.rowTables(&b)
	r.pluginTable(&b)
	meteringTable(&b, "Metering, × plain wazero (WithCloseOnContextDone is wazero's own way to stop a guest)", r.Metering,
		tunedBar)
	meteringTable(&b, "Metering of kernels that it was not tuned on, × plain wazero", r.MeteringUntuned, untunedBar)
	meteringTable(&b, "Metering of kernels that recurse, × plain wazero", r.MeteringRecursive, recursiveBar)
	r.executorTable(&b)
	r.scriptTables(&b)
	for i, left := range r.LeftOut {
		if i == 0 {
			b.WriteString("\nLeft out:\n")
		}
		fmt.Fprintf(&b, "  %s: %s\n", left.What, left.Reason)
	}
	return b.String()
}

// group identifies the rows of one table.
type group struct {
	guest   guests.Language
	payload int
}

// rowTables writes a table for each guest and payload: all measurements of a single caller, and the
// throughput of several callers.
func (r *Report) rowTables(b *strings.Builder) {
	var groups []group
	rows := map[group][]Row{}
	for _, row := range r.Rows {
		g := group{row.Guest, row.Payload}
		if !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
		rows[g] = append(rows[g], row)
	}
	for _, g := range groups {
		rowTable(b, fmt.Sprintf("Guest %s, %d bytes of JSON", g.guest, g.payload), rows[g])
	}
}

func rowTable(b *strings.Builder, title string, rows []Row) {
	heading := []string{"scheme", "p50 µs", "p99 µs", "÷ extism fresh", "× native", "÷ process"}
	var callers []int
	for _, row := range rows {
		if !slices.Contains(callers, row.Callers) {
			callers = append(callers, row.Callers)
			heading = append(heading, fmt.Sprintf("calls/s of %d", row.Callers))
		}
	}
	t := newTable(1, append(heading, fmt.Sprintf("p99 µs of %d", callers[len(callers)-1]))...)
	for _, row := range rows {
		if row.Callers != callers[0] {
			continue
		}
		cells := []string{string(row.Scheme), number(row.P50), number(row.P99),
			quotient(row.Ratio.ExtismFresh), quotient(row.Ratio.Native), quotient(row.Ratio.Process)}
		p99 := ""
		for _, other := range rows {
			if other.Scheme == row.Scheme {
				cells = append(cells, number(other.CallsPerSecond))
				p99 = number(other.P99)
			}
		}
		t.line(append(cells, p99)...)
	}
	t.write(b, title)
}

// pluginTable compares plug-ins on Caisson with the same plug-ins on Extism, for a single caller. The table has the
// mean in addition to the median because creating a plug-in on Extism leaves much of its work to later calls, which
// collect the garbage: the median does not show it.
func (r *Report) pluginTable(b *strings.Builder) {
	t := newTable(1, "guest", "bytes", "p50 µs", "÷ extism fresh", "÷ extism reused",
		"mean µs", "÷ extism fresh", "÷ extism reused", "bars")
	for _, row := range r.Rows {
		if row.Scheme != CaissonPlugin || row.Callers != 1 {
			continue
		}
		bars := ""
		if maximum, measured := pluginBars[row.Guest]; measured && row.Payload == smallPayload {
			bars = fmt.Sprintf("%.3f, %.0f", maximum.fresh, maximum.reused)
		}
		t.line(string(row.Guest), fmt.Sprint(row.Payload),
			number(row.P50), quotient(row.Ratio.ExtismFresh), quotient(row.Ratio.ExtismReused),
			number(1e6/row.CallsPerSecond), quotient(r.meanRatio(row, ExtismFresh)), quotient(r.meanRatio(row, ExtismReused)),
			bars)
	}
	t.write(b, "Extism plug-ins on Caisson, fresh for every call, beside the same on Extism's Go SDK")
}

// meanRatio is the mean time of row's calls divided by that of another scheme, for the same guest, payload
// and callers: nil where that scheme was left out.
func (r *Report) meanRatio(row Row, scheme Scheme) *float64 {
	for _, other := range r.Rows {
		if other.Guest == row.Guest && other.Payload == row.Payload && other.Callers == row.Callers &&
			other.Scheme == scheme {
			ratio := other.CallsPerSecond / row.CallsPerSecond
			return &ratio
		}
	}
	return nil
}

// meteringTable writes the overhead of metering and its upper bounds.
func meteringTable(b *strings.Builder, title string, rows []Metering, maximum bar) {
	if len(rows) == 0 {
		return
	}
	t := newTable(2, "kernel", "guest", "metered", "bar", "WithCloseOnContextDone")
	var metered, closing []float64
	for _, m := range rows {
		t.line(m.Kernel, string(m.Guest), fmt.Sprintf("%.2f", m.Fuel), "", fmt.Sprintf("%.1f", m.CloseOnContextDone))
		metered, closing = append(metered, m.Fuel), append(closing, m.CloseOnContextDone)
	}
	summary := func(what string, maximum float64, of func([]float64) float64) {
		limit := ""
		if maximum > 0 {
			limit = fmt.Sprintf("%.2f", maximum)
		}
		t.line(what, "", fmt.Sprintf("%.2f", of(metered)), limit, fmt.Sprintf("%.1f", of(closing)))
	}
	summary("geometric mean", maximum.mean, geometricMean)
	summary("worst", maximum.worst, slices.Max[[]float64])
	t.write(b, title)
}

func (r *Report) executorTable(b *strings.Builder) {
	t := newTable(1, "call", "bytes", "µs")
	for _, e := range r.Executor {
		t.line(string(e.Call), fmt.Sprint(e.Payload), number(e.P50))
	}
	t.write(b, "Overhead of a call: executor, registry and validation of the arguments")
}

// scriptTables writes a table for each language of scripts.
func (r *Report) scriptTables(b *strings.Builder) {
	rows := map[modules.Language][]Script{}
	var languages []modules.Language
	for _, row := range r.Scripts {
		if rows[row.Language] == nil {
			languages = append(languages, row.Language)
		}
		rows[row.Language] = append(rows[row.Language], row)
	}
	for _, language := range languages {
		scriptTable(b, language, rows[language])
	}
}

func scriptTable(b *strings.Builder, language modules.Language, rows []Script) {
	first, several := rows[0].Callers, rows[len(rows)-1].Callers
	heading := []string{"scheme", "p50 µs", "p99 µs", "÷ native start", "bar", fmt.Sprintf("calls/s of %d", first)}
	if several != first {
		heading = append(heading, fmt.Sprintf("calls/s of %d", several), fmt.Sprintf("p99 µs of %d", several))
	}
	t := newTable(1, heading...)
	for _, row := range rows {
		if row.Callers != first {
			continue
		}
		maximum := ""
		if row.Scheme == ScriptExecutor {
			maximum = fmt.Sprintf("%.2f", scriptBar)
		}
		cells := []string{string(row.Scheme), number(row.P50), number(row.P99), quotient(row.Native), maximum,
			number(row.CallsPerSecond)}
		for _, other := range rows {
			if other.Scheme == row.Scheme && other.Callers == several && several != first {
				cells = append(cells, number(other.CallsPerSecond), number(other.P99))
			}
		}
		t.line(cells...)
	}
	t.write(b, fmt.Sprintf("Scripts in %s: code that prints a sum", language))
}

// number formats three significant digits, or all before the point.
func number(value float64) string {
	switch {
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	}
	return fmt.Sprintf("%.2f", value)
}

func quotient(ratio *float64) string {
	switch {
	case ratio == nil:
		return "-"
	case *ratio < 0.1:
		return fmt.Sprintf("%.4f", *ratio)
	}
	return number(*ratio)
}

func geometricMean(values []float64) float64 {
	sum := 0.0
	for _, value := range values {
		sum += math.Log(value)
	}
	return math.Exp(sum / float64(len(values)))
}

// table aligns cells: the first columns, which are text, to the left, and the others, which are
// numbers, to the right. The first line is the heading.
type table struct {
	text  int // the number of text columns
	lines [][]string
}

func newTable(text int, heading ...string) *table { return &table{text, [][]string{heading}} }

func (t *table) line(cells ...string) { t.lines = append(t.lines, cells) }

// write writes the table with a title, or nothing if there is only a heading.
func (t *table) write(b *strings.Builder, title string) {
	if len(t.lines) < 2 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	widths := make([]int, len(t.lines[0]))
	for _, line := range t.lines {
		for column, cell := range line {
			widths[column] = max(widths[column], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range t.lines {
		for column, cell := range line {
			padding := strings.Repeat(" ", widths[column]-utf8.RuneCountInString(cell))
			if column < t.text {
				cell += padding
			} else {
				cell = padding + cell
			}
			b.WriteString("  " + cell)
		}
		b.WriteByte('\n')
	}
}
