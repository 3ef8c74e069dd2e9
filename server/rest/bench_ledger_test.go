//go:build unix

package rest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/rest"
	"github.com/caisson-run/caisson/server/sessions"
)

// BenchmarkLedgerOverHTTP compares the calls per second of servers that keep records and one that keeps none, with 64
// callers: of a sandboxed tool that reads, and with keys. Rounds alternate, and medians are compared.
func BenchmarkLedgerOverHTTP(b *testing.B) {
	const callers, rounds, round = 64, 5, 2 * time.Second
	kinds := []string{"none", "relaxed", "full"}
	servers := map[string]*httptest.Server{"none": benched(b, caisson.Options{})}
	servers["full"] = benched(b, caisson.Options{StateDir: filepath.Join(b.TempDir(), "state")})
	servers["relaxed"] = benched(b, caisson.Options{StateDir: filepath.Join(b.TempDir(), "state"), Records: caisson.Records{Relaxed: true}})
	for _, keys := range []bool{false, true} {
		b.Run(fmt.Sprintf("keys=%t", keys), func(b *testing.B) {
			var number atomic.Int64
			calls := func(server *httptest.Server) (rate, used float64) {
				var made atomic.Int64
				before := processor(b)
				var all sync.WaitGroup
				over := time.Now().Add(round)
				for range callers {
					c := dial(b, server, "")
					all.Go(func() {
						for time.Now().Before(over) {
							n := number.Add(1)
							body := fmt.Sprintf(`{"name":"calculator","arguments":{"expression":"%d+2"}}`, n)
							key := ""
							if keys {
								key = fmt.Sprintf("Idempotency-Key: %d\r\n", n)
							}
							c.text = fmt.Appendf(nil, "POST /v1/calls HTTP/1.1\r\nHost: localhost\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", key, len(body), body)
							if c.ask() != nil {
								return
							}
							made.Add(1)
						}
					})
				}
				all.Wait()
				return float64(made.Load()) / round.Seconds(), float64((processor(b) - before).Microseconds()) / float64(made.Load())
			}
			rates, times := map[string][]float64{}, map[string][]float64{}
			for range rounds {
				for _, kind := range kinds {
					rate, used := calls(servers[kind])
					rates[kind], times[kind] = append(rates[kind], rate), append(times[kind], used)
				}
			}
			for _, kind := range kinds {
				slices.Sort(rates[kind])
				slices.Sort(times[kind])
				b.ReportMetric(rates[kind][rounds/2], kind+"/s")
				b.ReportMetric(times[kind][rounds/2], kind+"-cpu-us")
			}
			b.ReportMetric(rates["full"][rounds/2]/rates["none"][rounds/2], "full/none")
			b.ReportMetric(rates["relaxed"][rounds/2]/rates["none"][rounds/2], "relaxed/none")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// benched returns a server with a calculator.
func benched(b *testing.B, options caisson.Options) *httptest.Server {
	root := noerr.Get(guests.Compile(b.Context(), "wasm-tools/calculator"))(b)
	options.Tools = []string{filepath.Join(root, "wasm-tools", "calculator")}
	options.Executor = executor.Options{Rates: executor.Rates{All: executor.Rate{Unlimited: true}, PerTenant: executor.Rate{Unlimited: true}, PerTool: executor.Rate{Unlimited: true}}}
	host := noerr.Get(caisson.Open(b.Context(), options))(b)
	kept := noerr.Get(sessions.New(host, sessions.Options{}))(b)
	api := noerr.Get(rest.New(host, rest.Options{Sessions: kept}))(b)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.ServeHTTP(w, r.WithContext(auth.With(r.Context(), callers["ada"])))
	}))
	b.Cleanup(func() {
		server.Close()
		require.NoError(b, api.Close(context.Background()))
		require.NoError(b, kept.Close(context.Background()))
		require.NoError(b, host.Close(context.Background()))
	})
	return server
}
