//go:build unix

package rest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/native"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/rest"
	"github.com/caisson-run/caisson/server/sessions"
	"github.com/caisson-run/caisson/tool"
)

const benchedArguments = `{"expression":"2+2"}`

// processor returns the processor time that the process has used.
func processor(t testing.TB) time.Duration {
	var used syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// connection asks a server the same again and again, with as little work of its own as possible.
type connection struct {
	conn   net.Conn
	reader *bufio.Reader
	text   []byte
}

func dial(t testing.TB, server *httptest.Server, text string) *connection {
	conn := noerr.Get(net.Dial("tcp", server.Listener.Addr().String()))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return &connection{conn, bufio.NewReader(conn), []byte(text)}
}

func (c *connection) ask() error {
	if _, err := c.conn.Write(c.text); err != nil {
		return err
	}
	length := 0
	for first := true; ; first = false {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && string(line) != "HTTP/1.1 200 OK\r\n" {
			return fmt.Errorf("answered %s", line)
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			length, err = strconv.Atoi(string(bytes.TrimSpace(value)))
			if err != nil {
				return err
			}
		}
		if len(line) == 2 {
			break
		}
	}
	_, err := c.reader.Discard(length)
	return err
}

// mostOverhead is the maximum processor time of a call over HTTP, in multiples of a constant answer's.
const mostOverhead = 3

// BenchmarkCallOverHTTP compares the processor time of a call over HTTP with that of net/http answering a constant of
// the same length. The tool does nothing and has no sandbox: how long a guest takes depends on what the processor has
// in its caches, by more than all that is measured here. The executor's work is included, and also shown by itself.
// Rounds of the three alternate, and medians are compared.
func BenchmarkCallOverHTTP(b *testing.B) {
	host, caller := idleHost(b), callers["ada"]
	kept := noerr.Get(sessions.New(host, sessions.Options{}))(b)
	api := noerr.Get(rest.New(host, rest.Options{Sessions: kept}))(b)
	b.Cleanup(func() {
		require.NoError(b, api.Close(context.Background()))
		require.NoError(b, kept.Close(context.Background()))
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.ServeHTTP(w, r.WithContext(auth.With(r.Context(), caller)))
	}))
	b.Cleanup(server.Close)
	session := noerr.Get(host.NewSession(executor.SessionOptions{Tenant: caller.Tenant, Context: caller.Context, User: caller.User}))(b)
	batch := executor.Batch{Session: session, Calls: []tool.Call{{ID: "c1", Function: tool.Function{Name: "nop", Arguments: benchedArguments}}}}
	report := noerr.Get(host.Execute(b.Context(), batch))(b)
	require.True(b, report.Records[0].Result.Success)
	constant := noerr.Get(report.Records[0].MarshalJSON())(b)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(constant)
	}))
	b.Cleanup(plain.Close)

	for name, more := range map[string]string{"in_a_session": `,"session":"s1"`, "without": ""} {
		b.Run(name, func(b *testing.B) {
			body := `{"id":"c1","name":"nop","arguments":` + benchedArguments + more + `}`
			request := fmt.Sprintf("POST /v1/calls HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ada\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			compare(b, dial(b, server, request).ask, dial(b, plain, request).ask, func() error {
				_, err := host.Execute(b.Context(), batch)
				return err
			})
		})
	}
}

// idleHost returns a host with a tool that does nothing, and without limits on the rate of calls.
func idleHost(b *testing.B) *caisson.Host {
	unlimited := executor.Rate{Unlimited: true}
	host := noerr.Get(caisson.Open(b.Context(), caisson.Options{
		NoCache: true, Tools: []string{filepath.Join("..", "..", "wasm-tools", "client")},
		Executor: executor.Options{Rates: executor.Rates{All: unlimited, PerTenant: unlimited, PerTool: unlimited}},
	}))(b)
	b.Cleanup(func() { require.NoError(b, host.Close(context.Background())) })
	nop := noerr.Get(native.New(native.About{Name: "nop", Description: "Does nothing.", Parameters: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, json.RawMessage) (string, error) { return "4", nil }))(b)
	require.NoError(b, host.Registry().Register("", nop))
	return host
}

// compare measures rounds of the three in turn.
func compare(b *testing.B, steps ...func() error) {
	const round = 500
	spent := make([][]float64, len(steps))
	for b.Loop() {
		for i, step := range steps {
			began := processor(b)
			for range round {
				if err := step(); err != nil {
					b.Fatal(err)
				}
			}
			spent[i] = append(spent[i], float64((processor(b)-began).Nanoseconds())/round/1000)
		}
	}
	for _, s := range spent {
		slices.Sort(s)
	}
	call, constant, executed := spent[0][len(spent[0])/2], spent[1][len(spent[1])/2], spent[2][len(spent[2])/2]
	b.ReportMetric(call, "call-µs")
	b.ReportMetric(constant, "constant-µs")
	b.ReportMetric(executed, "executor-µs")
	b.ReportMetric(call/constant, "ratio")
	b.ReportMetric(0, "ns/op")
	if call > mostOverhead*constant {
		b.Errorf("a call takes %.1f times what a constant does, and at most %d are allowed", call/constant, mostOverhead)
	}
}
