package benchmark

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/internal/modules"
)

func TestText(t *testing.T) {
	rows := []Row{
		{Guest: guests.C, Payload: 100, Scheme: Caisson, Callers: 1, P50: 4.125, P99: 12.25, CallsPerSecond: 200000},
		{Guest: guests.C, Payload: 100, Scheme: ExtismFresh, Callers: 1, P50: 412.5, P99: 1000, CallsPerSecond: 2000},
		{Guest: guests.C, Payload: 100, Scheme: CaissonPlugin, Callers: 1, P50: 8.25, P99: 20, CallsPerSecond: 100000},
		{Guest: guests.C, Payload: 100, Scheme: ExtismReused, Callers: 1, P50: 16.5, P99: 30, CallsPerSecond: 50000},
	}
	ratios(rows)
	rows = append(rows,
		Row{Guest: guests.C, Payload: 100, Scheme: Caisson, Callers: 64, CallsPerSecond: 300000, P99: 99},
		Row{Guest: guests.C, Payload: 100, Scheme: ExtismFresh, Callers: 64, CallsPerSecond: 3000, P99: 9999},
		Row{Guest: guests.C, Payload: 100, Scheme: CaissonPlugin, Callers: 64, CallsPerSecond: 200000, P99: 88},
		Row{Guest: guests.C, Payload: 100, Scheme: ExtismReused, Callers: 64, CallsPerSecond: 60000, P99: 77},
	)
	larger := []Row{
		{Guest: guests.C, Payload: 1000, Scheme: CaissonPlugin, Callers: 1, P50: 20, P99: 40, CallsPerSecond: 50000},
		{Guest: guests.C, Payload: 1000, Scheme: ExtismFresh, Callers: 1, P50: 400, P99: 800, CallsPerSecond: 2500},
	}
	ratios(larger)
	rows = append(rows, larger...)
	scripts := []Script{
		{Language: modules.Python, Scheme: NativeStart, Callers: 1, P50: 16000, P99: 20000, CallsPerSecond: 60},
		{Language: modules.Python, Scheme: ScriptExecutor, Callers: 1, P50: 640, P99: 1000, CallsPerSecond: 1500},
	}
	scriptRatios(scripts)
	scripts = append(scripts,
		Script{Language: modules.Python, Scheme: NativeStart, Callers: 8, P99: 90000, CallsPerSecond: 120},
		Script{Language: modules.Python, Scheme: ScriptExecutor, Callers: 8, P99: 8000, CallsPerSecond: 2900},
		Script{Language: modules.JavaScript, Scheme: ScriptDriver, Callers: 1, P50: 50, P99: 100, CallsPerSecond: 20000},
	)
	report := Report{
		Machine:           Machine{"plan9", "amd64", 2, "go1.26"},
		Rows:              rows,
		Metering:          []Metering{{"spin", guests.C, 1, 1, 9}, {"json", guests.Go, 1.21, 1.21, 4}},
		MeteringUntuned:   []Metering{{"regex", guests.Rust, 1.3, 1.3, 5}},
		MeteringRecursive: []Metering{{"fib", guests.C, 1.2, 1.2, 2}},
		Executor:          []Executor{{ExecutorRun, 100, 8.5}},
		Scripts:           scripts,
		LeftOut:           []LeftOut{{"guest go", "no toolchain"}},
	}
	require.Equal(t, `plan9/amd64, 2 processors, go1.26. Only ratios carry over to another machine.

Guest c, 100 bytes of JSON
  scheme          p50 µs  p99 µs  ÷ extism fresh  × native  ÷ process  calls/s of 1  calls/s of 64  p99 µs of 64
  caisson           4.12    12.2          0.0100         -          -        200000         300000          99.0
  extism-fresh       412    1000            1.00         -          -          2000           3000          9999
  caisson-plugin    8.25    20.0          0.0200         -          -        100000         200000          88.0
  extism-reused     16.5    30.0          0.0400         -          -         50000          60000          77.0

Guest c, 1000 bytes of JSON
  scheme          p50 µs  p99 µs  ÷ extism fresh  × native  ÷ process  calls/s of 1  p99 µs of 1
  caisson-plugin    20.0    40.0          0.0500         -          -         50000         40.0
  extism-fresh       400     800            1.00         -          -          2500          800

Extism plug-ins on Caisson, fresh for every call, beside the same on Extism's Go SDK
  guest  bytes  p50 µs  ÷ extism fresh  ÷ extism reused  mean µs  ÷ extism fresh  ÷ extism reused      bars
  c        100    8.25          0.0200             0.50     10.0          0.0200             0.50  0.050, 1
  c       1000    20.0          0.0500                -     20.0          0.0500                -          

Metering, × plain wazero (WithCloseOnContextDone is wazero's own way to stop a guest)
  kernel          guest  metered   bar  WithCloseOnContextDone
  spin            c         1.00                           9.0
  json            go        1.21                           4.0
  geometric mean            1.10  1.10                     6.0
  worst                     1.21  1.35                     9.0

Metering of kernels that it was not tuned on, × plain wazero
  kernel          guest  metered   bar  WithCloseOnContextDone
  regex           rust      1.30                           5.0
  geometric mean            1.30  1.15                     5.0
  worst                     1.30  1.50                     5.0

Metering of kernels that recurse, × plain wazero
  kernel          guest  metered   bar  WithCloseOnContextDone
  fib             c         1.20                           2.0
  geometric mean            1.20  1.25                     2.0
  worst                     1.20                           2.0

Overhead of a call: executor, registry and validation of the arguments
  call  bytes    µs
  run     100  8.50

Scripts in python: code that prints a sum
  scheme        p50 µs  p99 µs  ÷ native start   bar  calls/s of 1  calls/s of 8  p99 µs of 8
  native-start   16000   20000            1.00                60.0           120        90000
  executor         640    1000          0.0400  0.05          1500          2900         8000

Scripts in javascript: code that prints a sum
  scheme  p50 µs  p99 µs  ÷ native start  bar  calls/s of 1
  driver    50.0     100               -              20000

Left out:
  guest go: no toolchain
`, report.Text())
}
