// Package metrics counts calls for Prometheus: outcomes, durations, queueing, memory, fuel and denials.
package metrics

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// Metrics counts the calls of a host, of all tenants together. It is an [executor.Recorder]. Get one
// from [New]. It is safe for concurrent use.
type Metrics struct {
	registry  *prometheus.Registry
	calls     *prometheus.CounterVec
	reused    *prometheus.CounterVec
	lost      *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	queued    prometheus.Histogram
	compiled  prometheus.Histogram
	memory    *prometheus.HistogramVec
	fuel      *prometheus.CounterVec
	hostCalls *prometheus.CounterVec
	denials   *prometheus.CounterVec
}

// outcomeSuccess is the outcome of a call that succeeded; that of another is its kind.
const outcomeSuccess = "success"

// seconds are the buckets of durations: from a snapshot that is resumed to a tool's own deadline.
var seconds = []float64{0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60}

// New returns metrics without calls.
func New() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "caisson", Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Namespace: "caisson", Name: name, Help: help, Buckets: buckets}
	}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		calls: counter("calls_total", "Calls that ended, by tool and outcome: success, or the kind of the failure.",
			"tool", "outcome"),
		reused: counter("calls_reused_total", "Calls that were answered with the result of an identical call.", "tool"),
		lost:   counter("calls_unrecorded_total", "Calls whose record could not be kept.", "tool"),
		seconds: prometheus.NewHistogramVec(histogram("call_duration_seconds",
			"How long tools ran, without queueing and compiling.", seconds), []string{"tool"}),
		queued: prometheus.NewHistogram(histogram("call_queue_seconds",
			"How long calls waited for a slot and for their rates.", seconds)),
		compiled: prometheus.NewHistogram(histogram("call_compile_seconds", "How long calls waited for their module.",
			seconds)),
		memory: prometheus.NewHistogramVec(histogram("call_memory_bytes", "Peak size of linear memory.",
			prometheus.ExponentialBuckets(64<<10, 4, 9)), []string{"tool"}),
		fuel:      counter("fuel_total", "Instructions that tools executed.", "tool"),
		hostCalls: counter("host_calls_total", "Requests of tools to the host that need a permission.", "tool"),
		denials:   counter("denials_total", "Requests that were denied, by permission.", "permission"),
	}
	m.registry.MustRegister(m.calls, m.reused, m.lost, m.seconds, m.queued, m.compiled, m.memory, m.fuel, m.hostCalls,
		m.denials, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves the metrics as Prometheus reads them, with how many calls run and wait, as load returns them. It must
// be called at most once.
func (m *Metrics) Handler(load func() (running, waiting int)) http.Handler {
	gauge := func(name, help string, value func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "caisson", Name: name, Help: help},
			value))
	}
	gauge("calls_running", "Calls that run now.", func() float64 { running, _ := load(); return float64(running) })
	gauge("calls_waiting", "Calls that wait for a slot now.",
		func() float64 { _, waiting := load(); return float64(waiting) })
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Record counts one call. It never fails.
func (m *Metrics) Record(_ context.Context, ended executor.Entry) error {
	r, name := &ended.Record, ended.Tool
	if r.Result.Kind == tool.UnknownTool || ended.Brought {
		// What a model or a caller makes up must not grow the metrics, nor be shown to who reads those of all tenants
		name = ""
	}
	outcome := outcomeSuccess
	if !r.Result.Success {
		outcome = string(r.Result.Kind)
	}
	m.calls.WithLabelValues(name, outcome).Inc()
	if r.Unrecorded {
		m.lost.WithLabelValues(name).Inc()
	}
	for _, d := range r.Denials {
		m.denials.WithLabelValues(d.Permission).Inc()
	}
	if r.Cached || r.Skipped {
		if r.Result.Success {
			m.reused.WithLabelValues(name).Inc()
		}
		return nil
	}
	u := r.Usage
	if u.Wall == 0 {
		return nil // it was refused before the tool started
	}
	m.seconds.WithLabelValues(name).Observe(u.Wall.Seconds())
	m.queued.Observe(u.Queue.Seconds())
	if u.Compile > time.Microsecond {
		m.compiled.Observe(u.Compile.Seconds())
	}
	if u.Fuel != nil { // it ran in a sandbox
		m.memory.WithLabelValues(name).Observe(float64(u.MemoryBytes))
		m.fuel.WithLabelValues(name).Add(float64(*u.Fuel))
	}
	m.hostCalls.WithLabelValues(name).Add(float64(u.HostCalls))
	return nil
}
