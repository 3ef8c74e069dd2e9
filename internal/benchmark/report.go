package benchmark

import (
	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/internal/modules"
)

// Scheme is a way to run a guest.
type Scheme string

// The schemes.
const (
	Native       Scheme = "native"        // the tool's Go code, called in this process
	Process      Scheme = "process"       // the tool as a native program, started for each call
	Wazero       Scheme = "wazero"        // plain wazero, which runs a new instance's _start for each call
	ExtismFresh  Scheme = "extism-fresh"  // Extism's Go SDK, a new instance for each call
	ExtismReused Scheme = "extism-reused" // an instance for each processor, in which calls see what earlier ones left
	Caisson      Scheme = "caisson"
	// CaissonPlugin is Extism's plug-in, unchanged, on Caisson, which starts each call in a pristine instance.
	CaissonPlugin Scheme = "caisson-plugin"
)

// Report has the measurements of one run. Its lists are never nil.
type Report struct {
	Machine  Machine    `json:"machine"`
	Rows     []Row      `json:"rows"`
	Metering []Metering `json:"metering"`
	// MeteringUntuned has the kernels that metering was not tuned on. They are separate, so that tuned kernels do not make
	// up for them.
	MeteringUntuned []Metering `json:"metering_untuned"`
	// MeteringRecursive is of kernels that mostly call themselves.
	MeteringRecursive []Metering `json:"metering_recursive"`
	Executor          []Executor `json:"executor"`
	Scripts           []Script   `json:"scripts"`
	LeftOut           []LeftOut  `json:"left_out"`
}

// Machine is where the run took place.
type Machine struct {
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	Processors int    `json:"processors"` // that Go uses
	Go         string `json:"go"`
}

// Row is one scheme running one guest with a number of callers at a time.
type Row struct {
	Guest guests.Language `json:"guest"`
	// Payload is the length of the input, in bytes.
	Payload int    `json:"payload"`
	Scheme  Scheme `json:"scheme"`
	Callers int    `json:"callers"`
	// P50 and P99 are the latency of a call, as its caller sees it.
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
	// CallsPerSecond is of all callers together.
	CallsPerSecond float64 `json:"calls_per_s"`
	Ratio          Ratio   `json:"ratio"`
}

// Ratio is a row's P50 divided by that of another scheme for the same guest, payload and
// callers: nil where that scheme was left out.
type Ratio struct {
	ExtismFresh  *float64 `json:"extism_fresh"`
	ExtismReused *float64 `json:"extism_reused"`
	Native       *float64 `json:"native"`
	Process      *float64 `json:"process"`
}

// Metering has the ratios of a kernel's time to its time on plain wazero, by the guest's own clock.
type Metering struct {
	Kernel string          `json:"kernel"`
	Guest  guests.Language `json:"guest"`
	// Stop and Fuel are the same measure. Caisson has one form of metering, which counts
	// exactly, is always on, and both stops a guest and accounts for it.
	Stop float64 `json:"stop"`
	Fuel float64 `json:"fuel"`
	// CloseOnContextDone is wazero's own way to stop a guest.
	CloseOnContextDone float64 `json:"close_on_context_done"`
}

// bar has the maximum ratios for metering. Zero means that there is no maximum.
type bar struct{ mean, worst float64 }

// Kernels that metering was not tuned on may cost more. So may recursion, which metering tests at each call and at the
// end of the function.
var (
	tunedBar     = bar{mean: 1.10, worst: 1.35}
	untunedBar   = bar{mean: 1.15, worst: 1.50}
	recursiveBar = bar{mean: 1.25}
)

// pluginBar has the maximum ratios of a plug-in's call on Caisson to its call on Extism, for a single caller and the
// smaller payload.
type pluginBar struct{ fresh, reused float64 }

var pluginBars = map[guests.Language]pluginBar{
	guests.C:    {fresh: 1.0 / 20, reused: 1},
	guests.Rust: {fresh: 1.0 / 20, reused: 1},
	guests.Go:   {fresh: 1.0 / 13, reused: 5},
}

// Executor is the time that executor, registry and the check of the arguments add to a call.
type Executor struct {
	Call    ExecutorCall `json:"call"`
	Payload int          `json:"payload"` // bytes
	P50     float64      `json:"p50_us"`
}

// ExecutorCall is a way in which the executor answers a call.
type ExecutorCall string

// The calls that are measured.
const (
	ExecutorRun    ExecutorCall = "run"
	ExecutorReused ExecutorCall = "reused" // it gets the answer of an earlier one
	ExecutorNested ExecutorCall = "nested" // it makes another call, which is run; both together
)

// Script is one way to run a line of code in a language of scripts, with a number of callers at a time.
type Script struct {
	Language modules.Language `json:"language"`
	Scheme   ScriptScheme     `json:"scheme"`
	Callers  int              `json:"callers"`
	// P50 and P99 are the latency of a call, as its caller sees it.
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
	// CallsPerSecond is of all callers together.
	CallsPerSecond float64 `json:"calls_per_s"`
	// Native is P50 divided by that of the native interpreter for as many callers, nil if there is none.
	Native *float64 `json:"native_ratio"`
}

// ScriptScheme is a way to run code of a language of scripts.
type ScriptScheme string

// The ways to run code. All but the first are in Caisson's sandbox, and start each call in a pristine instance.
const (
	NativeStart    ScriptScheme = "native-start" // the native interpreter, started for each call
	ScriptExecutor ScriptScheme = "executor"     // a tool that runs code, called through the executor
	ScriptRuntime  ScriptScheme = "runtime"      // the same tool, called directly
	ScriptDriver   ScriptScheme = "driver"       // a tool that returns its argument, called directly
)

// scriptBar is the maximum ratio of a call through the executor to a native start, for a single caller.
const scriptBar = 1.0 / 20

// scriptRatios fills in the ratios of rows of one language and number of callers.
func scriptRatios(rows []Script) {
	native := 0.0
	for _, row := range rows {
		if row.Scheme == NativeStart {
			native = row.P50
		}
	}
	if native == 0 {
		return
	}
	for i := range rows {
		ratio := rows[i].P50 / native
		rows[i].Native = &ratio
	}
}

// LeftOut is a measurement that was not possible here.
type LeftOut struct {
	What   string `json:"what"`
	Reason string `json:"reason"`
}

// ratios fills in the ratios of rows of one guest, payload and number of callers.
func ratios(rows []Row) {
	p50 := map[Scheme]float64{}
	for _, row := range rows {
		p50[row.Scheme] = row.P50
	}
	over := func(row Row, scheme Scheme) *float64 {
		base := p50[scheme]
		if base == 0 {
			return nil
		}
		ratio := row.P50 / base
		return &ratio
	}
	for i, row := range rows {
		rows[i].Ratio = Ratio{over(row, ExtismFresh), over(row, ExtismReused), over(row, Native), over(row, Process)}
	}
}
