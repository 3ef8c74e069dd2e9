//go:build smith

package engine

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// Modules that a generator made which is not ours, with loops that may not end; see `make smith`.

// modulesFolder is where the modules are.
var modulesFolder = flag.String("modules", "", "the folder of the modules that TestSmith runs")

const (
	smithDeadline = 50 * time.Millisecond
	smithOver     = 100 * time.Millisecond // the maximum delay of the end of a single run
	smithFuel     = 1 << 40                // more than there is time for
	smithLittle   = 1000                   // fuel that an endless run uses up at once
	smithAttempts = 3                      // of a run that ends late
	smithWatchdog = 10 * time.Second       // after which a run is one that never ends
)

// smithEnds count how runs ended.
type smithEnds struct{ modules, refused, unmade, returned, trapped, late, starved, memory int }

// TestSmith: the passes' output for a module is valid, and each of its functions ends.
func TestSmith(t *testing.T) {
	require.NotEmpty(t, *modulesFolder, "make smith makes the modules and says where they are")
	files, err := filepath.Glob(filepath.Join(*modulesFolder, "*.wasm"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	slices.Sort(files)
	e := newEngine(t, Options{ModuleBytes: 16 * mebibyte}, nil)
	var ends smithEnds
	for _, file := range files {
		source := read(t, file)
		require.NoError(t, e.smith(t.Context(), file, source, &ends), file)
	}
	t.Logf("%+v", ends)
	require.Less(t, ends.refused*10, ends.modules, "modules that a limit of ours keeps out")
	require.Positive(t, ends.late, "loops that only the deadline ends")
	require.Positive(t, ends.starved)
	require.Positive(t, ends.returned)
}

// smith runs a module's exports.
func (e *Engine) smith(ctx context.Context, file string, source []byte, ends *smithEnds) error {
	ends.modules++
	description, err := wasm.Inspect(source)
	if err != nil {
		return err
	}
	switch _, err = rewriteWithin(ctx, source, description, wasm.Bounds{}, role{}, nil); {
	case errors.Is(err, wasm.ErrLimit):
		ends.refused++
		return nil
	case errors.Is(err, wasm.ErrUninstantiable):
		ends.unmade++
		return nil
	case err != nil:
		return err
	}
	module, err := e.Compile(ctx, source)
	if err != nil {
		return err
	}
	for _, export := range description.Exports {
		function, ok := description.ExportedFunction(export.Name)
		if !ok || len(function.Params) > 0 || len(function.Results) > 0 {
			continue
		}
		for _, fuel := range []int64{smithFuel, smithLittle} {
			if err := module.smith(ctx, file, Run{Function: export.Name, MemoryLimit: 16 * mebibyte, Fuel: fuel}, ends); err != nil {
				return fmt.Errorf("%q with a fuel of %d: %w", export.Name, fuel, err)
			}
		}
	}
	return nil
}

// smith holds a run to its deadline.
func (m *Module) smith(ctx context.Context, file string, run Run, ends *smithEnds) error {
	watchdog := time.AfterFunc(smithWatchdog, func() {
		panic(fmt.Sprintf("%s: function %q never ends", file, run.Function))
	})
	defer watchdog.Stop()
	var err error
	var over time.Duration
	for attempt := range smithAttempts {
		time.Sleep(time.Duration(attempt) * time.Second) // other work may run at the same time
		limited, cancel := context.WithTimeout(ctx, smithDeadline)
		start := time.Now()
		_, err = m.Run(limited, run)
		over = time.Since(start) - smithDeadline
		cancel()
		if over <= smithOver {
			return ends.add(err)
		}
	}
	return fmt.Errorf("ended %s after the deadline: %w", over, err)
}

func (s *smithEnds) add(err error) error {
	var failure *Error
	switch {
	case err == nil:
		s.returned++
	case errors.Is(err, context.DeadlineExceeded):
		s.late++
	case errors.Is(err, ErrFuel):
		s.starved++
	case errors.Is(err, ErrTrap):
		s.trapped++
	case errors.Is(err, ErrMemory):
		s.memory++
	case errors.As(err, &failure) && failure.Op == "instantiate":
		s.unmade++ // a segment does not fit, or the like
	default:
		return err
	}
	return nil
}
