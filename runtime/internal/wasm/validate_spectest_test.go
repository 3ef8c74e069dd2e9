package wasm

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// check inspects and validates.
func check(source []byte, bounds Bounds, features Features) (*Analysis, error) {
	m, err := InspectWithin(source, bounds)
	if err != nil {
		return nil, err
	}
	return ValidateWithin(context.Background(), source, m, bounds, features)
}

// inspected and the functions after it are for valid modules.
func inspected(t testing.TB, source []byte) *Module {
	t.Helper()
	m, err := Inspect(source)
	require.NoError(t, err)
	return m
}

func checked(t testing.TB, source []byte, features Features) *Analysis {
	t.Helper()
	a, err := check(source, Bounds{}, features)
	require.NoError(t, err)
	return a
}

func rewrote(t testing.TB, source []byte, a *Analysis, passes Passes) *Rewritten {
	t.Helper()
	got, err := Rewrite(t.Context(), source, a, passes)
	require.NoError(t, err)
	return got
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	return content
}

// validated holds the results of validation for a suite.
type validated struct {
	features Features
	// refused counts the valid modules that are refused, by the proposal they need.
	refused map[string]int
	// accepted are the modules that are accepted though the suite calls them invalid.
	accepted []string
}

func validatedSuites() map[string]validated {
	return map[string]validated{
		"v1": {accepted: slices.Concat(
			files("func", 20, 21),    // two results, which core 2.0 has
			files("imports", 47, 49), // two tables, which core 2.0 has
			files("type", 3, 4),      // two results
			// br_table that is never reached, with labels of different types: valid since
			// core 2.0, where it takes whatever it needs off the stack (§3.3.8).
			files("unreached-invalid", 87, 87),
		)},
		"v2":                        {},
		"exception-handling":        {refused: map[string]int{ExceptionHandling: 12, GarbageCollection: 2}},
		"extended-const":            {refused: map[string]int{ExtendedConstants: 9}},
		"tail-call":                 {features: Features{TailCalls: true}},
		"threads":                   {refused: map[string]int{Threads: 5}},
		"typed-function-references": {refused: map[string]int{FunctionReferences: 83, TailCalls: 6}},
	}
}

// Of the specification's tests, every module that must be refused is, and every other is
// accepted, save those that are listed.
func TestSpecificationIsValidated(t *testing.T) {
	root := filepath.Join(wazeroDir(t), "internal", "integration_test", "spectest")
	for suite, want := range validatedSuites() {
		t.Run(suite, func(t *testing.T) {
			dir := filepath.Join(root, suite, "testdata")
			listed := commands(t, dir)
			present, err := filepath.Glob(filepath.Join(dir, "*.wasm"))
			require.NoError(t, err)
			require.Len(t, listed, len(present), "each module in the folder belongs to a command")
			refused, counts := map[string]int{}, map[string]int{}
			var accepted []string
			for _, c := range listed {
				source := read(t, filepath.Join(dir, c.Filename))
				m, err := Inspect(source)
				if err == nil {
					checkModule(t, source, m)
					_, err = ValidateWithin(t.Context(), source, m, Bounds{}, want.features)
				}
				counts[c.Type+", "+outcome(err)]++
				switch {
				case err == nil && !c.valid():
					accepted = append(accepted, c.Filename)
				case err != nil && c.valid():
					require.ErrorIs(t, err, ErrUnsupported, c.Filename)
					refused[proposal(t, err)]++
				}
			}
			t.Log(counts)
			slices.Sort(accepted)
			assert.Equal(t, want.accepted, accepted, "invalid modules that are accepted")
			assert.True(t, maps.Equal(want.refused, refused), "valid modules, by the feature that they need: %v", refused)
		})
	}
}

// The tail call suite without tail calls: modules that need them are refused by name.
func TestTailCallsAreAFeature(t *testing.T) {
	dir := filepath.Join(wazeroDir(t), "internal", "integration_test", "spectest", "tail-call", "testdata")
	refused := 0
	for _, c := range commands(t, dir) {
		source := read(t, filepath.Join(dir, c.Filename))
		if _, err := check(source, Bounds{}, Features{}); c.valid() && err != nil {
			require.ErrorIs(t, err, ErrUnsupported)
			assert.ErrorContains(t, err, "return_call")
			assert.Equal(t, TailCalls, proposal(t, err))
			refused++
		}
	}
	assert.Positive(t, refused)
}

// goProgram is a program of the Go distribution, built for wasip1.
func goProgram(tb testing.TB) []byte {
	tb.Helper()
	source, err := builtGoProgram()
	require.NoError(tb, err)
	return slices.Clone(source)
}

var builtGoProgram = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "caisson-test-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "gofmt.wasm")
	build := exec.Command("go", "build", "-trimpath", "-o", path, "cmd/gofmt")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(path)
})
