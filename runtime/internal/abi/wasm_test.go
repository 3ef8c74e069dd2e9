package abi

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/network"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestProgramsImportWhatTheyUse: a module may import only functions for which its manifest requests permissions, so the
// SDK must not add other imports.
func TestProgramsImportWhatTheyUse(t *testing.T) {
	for program, want := range map[string][]string{
		"do":     {read, request},
		"doall":  {read, send, receive},
		"exists": {read, exists},
		"call":   {read, toolCall},
		"emit":   {read, emit},
		"about":  {read, get},
	} {
		output := filepath.Join(t.TempDir(), program+".wasm")
		require.NoError(t, guests.Build(t.Context(), ".", "./testdata/"+program, output))
		source, err := os.ReadFile(output)
		require.NoError(t, err)
		module, err := wasm.Inspect(source)
		require.NoError(t, err)
		var imported []string
		for _, i := range module.Imports {
			if i.Module != wasi.ModuleName {
				imported = append(imported, i.Module+"."+i.Name)
			}
		}
		assert.ElementsMatch(t, want, imported, program)
	}
}

// probe is a module that takes the steps in its input.
type probe struct {
	t      *testing.T
	module *engine.Module
}

func newProbe(t *testing.T) *probe {
	t.Helper()
	root, err := guests.Compile(t.Context(), "internal/guests/netprobe")
	require.NoError(t, err)
	source, err := os.ReadFile(filepath.Join(root, "internal/guests/netprobe/netprobe.wasm"))
	require.NoError(t, err)
	_, cache, err := guests.CompiledCode()
	require.NoError(t, err)
	e, err := engine.New(t.Context(), engine.Options{
		CacheDir: cache, Functions: append(wasi.Functions(), Functions()...),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close(context.WithoutCancel(t.Context()))) })
	module, err := e.Compile(t.Context(), source)
	require.NoError(t, err)
	return &probe{t, module}
}

// run runs steps in a context, and decodes the result of each into its element of results.
func (p *probe) run(ctx context.Context, steps string, results ...any) error {
	p.t.Helper()
	output := wasi.Output{Limit: 1 << 20}
	ctx = wasi.With(ctx, &wasi.System{
		Stdin: []byte(`{"steps":` + steps + `}`), Stdout: &output,
		Now: time.Now, Started: time.Now(), Random: strings.NewReader(strings.Repeat("random", 100)),
	})
	_, err := p.module.Run(ctx, engine.Run{Function: "_start", MemoryLimit: 64 << 20})
	if exit := new(wasi.ExitError); !errors.As(err, &exit) || exit.Code != 0 {
		return err
	}
	var raw []json.RawMessage
	require.NoError(p.t, json.Unmarshal(output.Bytes, &raw))
	require.Len(p.t, raw, len(results))
	for i, result := range results {
		require.NoError(p.t, json.Unmarshal(raw[i], result), string(raw[i]))
	}
	return nil
}

// guestAnswer is the probe's output about a request or a question.
type guestAnswer struct {
	Status  int
	URL     string
	Headers [][2]string
	Body    string
	Exists  *bool
	Error   struct {
		Text   string
		Status status
	}
}

// echo is a network that answers with the request, except for URLs that hold "bad".
type echo struct {
	sent   []network.Request
	flying int
	most   int
}

func (*echo) Check(context.Context, network.Request, int) error { return nil }

func (n *echo) Do(_ context.Context, r network.Request) (network.Response, error) {
	if strings.Contains(r.URL, "bad") {
		return network.Response{}, &hostfuncs.Error{Op: "request", Kind: hostfuncs.ErrIO, Message: "no such host"}
	}
	return network.Response{Status: 200, URL: r.URL, Headers: append(r.Headers, [2]string{"X-Method", r.Method}), Body: r.Body}, nil
}

func (n *echo) Send(_ context.Context, r network.Request) (int, error) {
	n.sent = append(n.sent, r)
	n.flying++
	n.most = max(n.most, n.flying)
	return len(n.sent), nil
}

func (n *echo) Receive(ctx context.Context, id int) (network.Response, error) {
	n.flying--
	return n.Do(ctx, n.sent[id-1])
}

func TestGuestUsesTheSDK(t *testing.T) {
	p := newProbe(t)
	wire := &echo{}
	ctx := With(t.Context(), &Session{Network: wire, Secrets: known{"KEY": true, "OTHER": false}})
	var requests []string
	for i := range 25 {
		requests = append(requests, fmt.Sprintf(`{"url":"https://example.com/%d","method":"PUT","body":"%d"}`, i, i))
	}
	long := strings.Repeat("long", 50_000)
	var one, all []guestAnswer
	var there, absent, forbidden guestAnswer
	require.NoError(t, p.run(ctx, `[
		{"do":"net","requests":[{"url":"https://example.com/","headers":[["A","1"],["A","2"]],"body":"`+long+`"},{"url":"https://bad.example/"}]},
		{"do":"netall","requests":[`+strings.Join(requests, ",")+`]},
		{"do":"secret","name":"KEY"},{"do":"secret","name":"OTHER"},{"do":"secret","name":"THIRD"}]`,
		&one, &all, &there, &absent, &forbidden))

	require.Len(t, one, 2)
	assert.Equal(t, guestAnswer{Status: 200, URL: "https://example.com/", Headers: [][2]string{{"A", "1"}, {"A", "2"}, {"X-Method", "GET"}}, Body: long}, one[0])
	assert.Equal(t, "io: no such host", one[1].Error.Text)
	require.Len(t, all, 25)
	for i, a := range all {
		assert.Equal(t, fmt.Sprintf("https://example.com/%d", i), a.URL)
		assert.Equal(t, fmt.Sprint(i), a.Body)
	}
	assert.Equal(t, 10, wire.most)
	assert.True(t, *there.Exists)
	assert.False(t, *absent.Exists)
	assert.Equal(t, statusDenied, forbidden.Error.Status)
}

// TestGuestMakesRawCalls: an invalid call does not end the guest.
func TestGuestMakesRawCalls(t *testing.T) {
	p := newProbe(t)
	ctx := With(t.Context(), &Session{Network: &echo{}, Secrets: known{"KEY": true}})
	var answers []struct {
		Status   status
		Response []byte
		Read     int
	}
	require.NoError(t, p.run(ctx, `[{"do":"raw","calls":[
		{"call":"exists","text":"{\"name\":\"KEY\"}"},
		{"call":"exists","at":4294967295,"length":4294967295},
		{"call":"request","text":"{\"method\":\"GET\",\"url\":\"u\",\"headers\":[]}","body_at":4294967280,"body_length":17},
		{"call":"read","at":4294967295,"length":1},
		{"call":"receive","text":"{\"id\":\"x\"}"}]}]`, &answers))
	require.Len(t, answers, 5)
	assert.Equal(t, `{"exists":true}`, string(answers[0].Response))
	assert.Equal(t, statusInvalid, answers[1].Status)
	assert.Equal(t, `{"message":"the body lies outside the memory"}`, string(answers[2].Response))
	assert.Equal(t, -1, answers[3].Read)
	assert.Equal(t, statusInvalid, answers[4].Status)
}

// TestGuestSearchesItsMemory is the control of tests that expect a search to find nothing.
func TestGuestSearchesItsMemory(t *testing.T) {
	p := newProbe(t)
	ctx := With(t.Context(), &Session{Network: &echo{}})
	hidden := func(text string) string {
		bytes := []byte(text)
		for i := range bytes {
			bytes[i] ^= 0x5a
		}
		return hex.EncodeToString(bytes)
	}
	var answers []guestAnswer
	var found, missing int
	require.NoError(t, p.run(ctx, `[{"do":"net","requests":[{"url":"https://example.com/","body":"there it is"}]},
		{"do":"search","hidden":"`+hidden("there it is")+`"},{"do":"search","hidden":"`+hidden("nowhere to be seen")+`"}]`,
		&answers, &found, &missing))
	assert.Positive(t, found)
	assert.Zero(t, missing)
}
