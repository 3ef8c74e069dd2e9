package runtime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/tool"
)

// jsonTool loads the JSON tool of a language, with lines added to its manifest.
func jsonTool(t testing.TB, r *Runtime, language guests.Language, lines string) *Tool {
	t.Helper()
	source, err := guests.Command(t.Context(), language, t.TempDir())
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tool.wasm"), source, 0o600))
	text := fmt.Sprintf("schema: caisson/v1\nname: %s\nlabel: JSON\ndescription: Upper case and a sum.\nversion: 1.0.0\ncategory: test\n"+
		"module: {path: tool.wasm}\nparameters: {type: object}\n%s", language, lines)
	m, err := manifests.Parse(filepath.Join(dir, "tool.yaml"), []byte(text))
	require.NoError(t, err)
	return load(t, r, m, manifests.Grants{})
}

// answered makes one call, and checks the answer: it counts the calls that the program's memory
// knows of, which must be one.
func answered(ctx context.Context, loaded *Tool, call guests.Call) error {
	arguments, err := tool.ParseArguments(string(call.Input))
	if err != nil {
		return err
	}
	outcome, err := loaded.Invoke(ctx, tool.Invocation{Arguments: arguments})
	if err != nil {
		return err
	}
	return call.Check([]byte(outcome.Result.Output))
}

// settled waits for the start of a program that was called twice.
func (p *program) settled(t *testing.T) (started *engine.Program, reason string) {
	t.Helper()
	require.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		started, reason = p.started, p.reason
		return started != nil || reason != ""
	}, time.Minute, time.Millisecond)
	return started, reason
}

func TestProgramsAreStartedOnce(t *testing.T) {
	tests := []struct {
		language guests.Language
		behavior string
		reason   string // why it is not
	}{
		{guests.C, "", ""},
		{guests.C, "behavior: {snapshot: off}", "the manifest says snapshot: off"},
		{guests.Rust, "", ""},
		{guests.Go, "", "it asks for random bytes as it starts"},
		{guests.Go, "behavior: {snapshot: start}", ""},
		{guests.GoWarm, "behavior: {snapshot: start}", ""},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s %s", test.language, test.behavior), func(t *testing.T) {
			r := newRuntime(t, Options{})
			loaded := jsonTool(t, r, test.language, test.behavior)
			first, second := guests.NewCall(100), guests.NewCall(5000)
			require.NoError(t, answered(t.Context(), loaded, first))
			require.NoError(t, answered(t.Context(), loaded, second))
			started, reason := loaded.program.settled(t)
			for range 3 {
				require.NoError(t, answered(t.Context(), loaded, first))
				require.NoError(t, answered(t.Context(), loaded, second))
			}
			assert.Contains(t, reason, test.reason)
			assert.Equal(t, test.reason == "", started != nil, reason)
			var group sync.WaitGroup
			for n := range 16 {
				group.Go(func() {
					for i := range 20 {
						call := guests.NewCall(50 + 100*n + i)
						if n%4 == 0 && i%5 == 0 { // some are stopped somewhere
							ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*50*time.Microsecond)
							_ = answered(ctx, loaded, call)
							cancel()
						}
						assert.NoError(t, answered(t.Context(), loaded, call))
					}
				})
			}
			group.Wait()
		})
	}
}
