package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/benchmark"
	"github.com/caisson-run/caisson/internal/benchmark/guests"
)

// TestBenchPrints: people get tables and programs get JSON. A hint names omitted measurements, unless the command is
// quiet.
func TestBenchPrints(t *testing.T) {
	report := &benchmark.Report{
		Rows:     []benchmark.Row{{Guest: guests.C, Payload: 100, Scheme: benchmark.Caisson, Callers: 1, P50: 4, P99: 12, CallsPerSecond: 200000}},
		Metering: []benchmark.Metering{{Kernel: "spin", Guest: guests.C, Stop: 1, Fuel: 1, CloseOnContextDone: 9}},
		LeftOut:  []benchmark.LeftOut{{What: "guest go", Reason: "no toolchain"}},
	}
	const hint = "caisson: hint: left out: guest go: no toolchain\n"
	for name, test := range map[string]struct {
		options options
		hint    string
	}{
		"people":         {options{}, hint},
		"quiet":          {options{quiet: true}, ""},
		"programs":       {options{json: true}, hint},
		"quiet programs": {options{json: true, quiet: true}, ""},
	} {
		var stdout, stderr bytes.Buffer
		test.options.environment = environment{stdout: &stdout, stderr: &stderr}
		require.NoError(t, test.options.printReport(report), name)
		assert.Equal(t, test.hint, stderr.String(), name)
		if test.options.json {
			var printed benchmark.Report
			require.NoError(t, json.Unmarshal(stdout.Bytes(), &printed), name)
			assert.Equal(t, report.Rows, printed.Rows, name)
			continue
		}
		assert.Regexp(t, `(?m)^Guest c, 100 bytes of JSON$`, stdout.String(), name)
		assert.Regexp(t, `(?m)^  caisson +[0-9.]+ `, stdout.String(), name)
		assert.Regexp(t, `(?m)^  geometric mean +`, stdout.String(), name)
	}
}
