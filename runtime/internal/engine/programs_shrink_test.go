//go:build !race

package engine

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/programs"
)

// programModule is the variable that holds an export and a file with a module, which a process
// is to run until the deadline.
const programModule = "CAISSON_TEST_PROGRAM"

// shrinkPatience is how long a program may take that is being made smaller.
const shrinkPatience = 700 * time.Millisecond

// runModule runs a module, and says when it begins. What it comes to does not matter.
func runModule(t *testing.T, what string) {
	entry, file, _ := strings.Cut(what, ":")
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	module, err := newEngine(t, Options{Functions: programFunctions()}, nil).Compile(t.Context(), source)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), programDeadline)
	defer cancel()
	ctx, _ = observing(ctx)
	assert.NoError(t, json.NewEncoder(os.Stdout).Encode(news{}))
	_, err = module.Run(ctx, Run{Function: entry, MemoryLimit: plain.MemoryLimit})
	t.Log(err)
}

// shrinkEscape makes an endless program that is not stopped smaller, as long as -shrink says,
// and shows it. Each try is a process, because one that succeeds hangs.
func shrinkEscape(t *testing.T, p *programs.Program) {
	if *shrinkFor <= 0 {
		return
	}
	p.Before = "" // what is endless is so without
	file := filepath.Join(t.TempDir(), "module.wasm")
	escapes := func() bool {
		if outcome, err := p.Run(1 << 18); err == nil || !outcome.Endless {
			return false
		}
		source, err := p.Module()
		if err != nil {
			return false
		}
		require.NoError(t, os.WriteFile(file, source, 0o600))
		_, finished, _ := listen(t, programModule+"="+p.Entry+":"+file, shrinkPatience, func(news) {})
		return !finished
	}
	if !escapes() {
		t.Log("it comes back when it is run alone")
		return
	}
	programs.Shrink(p, escapes, time.Now().Add(*shrinkFor))
	t.Logf("made smaller:\n%s", p)
}
