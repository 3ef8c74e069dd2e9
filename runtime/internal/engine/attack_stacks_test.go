package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// nested is a module that asks the host how deep to go, goes there, and then calls the same of a library, or the host
// if there is no library.
func nested(library string, d descent) []byte {
	imports, below := join([]byte{1}, name("test"), name("host"), []byte{0, 0}), byte(0)
	if library != "" {
		imports, below = join([]byte{2}, imports[1:], name(library), name("run"), []byte{0, 0}), 1
	}
	run, descend := below+1, below+2
	before, after := d.kept()
	step := join([]byte{0x20, 0, 0x45, 0x04, 0x40, 0x10, below, 0x05, 0x20, 0, 0x41, 1, 0x6b, 0x10, descend, 0x0b})
	return join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0},
		section(1, 2, 0x60, 0, 0, 0x60, 1, 0x7f, 0),
		section(2, imports...), section(3, 2, 0, 1), section(5, 1, 0, 1),
		section(7, join([]byte{1}, name("run"), []byte{0, run})...),
		section(10, join([]byte{2}, function(nil, []byte{0x10, 0, 0x41, 0, 0x28, 2, 0, 0x10, descend}),
			function(join([]byte{1}, leb(d.locals), []byte{0x7f}), before, step, after))...))
}

// TestAttackStacksOfLibraries: a plug-in and its libraries that call one another at the bottom of deep recursions take
// no more of the host's stack together than one module may.
func TestAttackStacksOfLibraries(t *testing.T) {
	for _, d := range []descent{{name: "small functions", frame: 128}, {name: "functions with 1,000 locals", locals: 1000, frame: 17 << 10}} {
		for _, libraries := range []int{0, 1, MaxLibraries} {
			t.Run(fmt.Sprint(d.name, ", libraries: ", libraries), func(t *testing.T) {
				source := Source{Libraries: map[string][]byte{}}
				next := ""
				for n := range libraries {
					name := fmt.Sprint("l", n)
					source.Libraries[name], next = nested(next, d), name
				}
				source.Module = nested(next, d)
				depth, asked := uint32(0), 0
				var bottom func()
				e := newEngine(t, Options{}, func(_ context.Context, memory hostfuncs.Memory, _ []uint64) error {
					if asked++; asked <= 1+libraries {
						view, _ := memory.View(0, 4)
						binary.LittleEndian.PutUint32(view, depth)
					} else if bottom != nil {
						bottom()
					}
					return nil
				})
				module := compileLinked(t, e, source)
				reaches := func(to uint32) bool {
					depth, asked = to, 0
					_, err := module.Run(t.Context(), plain)
					if err != nil {
						require.ErrorContains(t, err, "stack overflow")
					}
					return err == nil
				}
				low, high := uint32(0), uint32(1<<18)
				for high-low > 1 {
					if middle := low + (high-low)/2; reaches(middle) {
						low = middle
					} else {
						high = middle
					}
				}
				before, taken := heap(), int64(0)
				bottom = func() { taken = heap() - before }
				require.True(t, reaches(low))
				t.Logf("%d times %d calls take %d KiB of the host's stack", 1+libraries, low, taken>>10)
				assert.Less(t, taken, int64(usualStack))
				assert.GreaterOrEqual(t, int64(1+libraries)*int64(low+2)*d.frame, int64(wasm.DefaultStackBytes), "the bound can be used")
			})
		}
	}
}

// TestAttackFunctionsOneAfterAnother: a run calls several functions of the guest, such as start functions, and begins
// none of them when its context has ended. Each could let its stack grow for milliseconds, and the sixteen of a plug-in
// with libraries took seconds after a deadline of 50 ms, in which no test of the meter looked at the time.
func TestAttackFunctionsOneAfterAnother(t *testing.T) {
	for _, ends := range []bool{true, false} {
		t.Run(map[bool]string{true: "ended", false: "control"}[ends], func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			calls := 0
			module := compile(t, newEngine(t, Options{}, func(context.Context, hostfuncs.Memory, []uint64) error {
				if calls++; ends {
					cancel()
				}
				return nil
			}), program{body: callImport, importing: true, memory: -1, start: true})
			_, err := module.Run(ctx, plain)
			if !ends {
				require.NoError(t, err)
				assert.Equal(t, 2, calls)
				return
			}
			require.ErrorIs(t, err, context.Canceled)
			assert.Equal(t, 1, calls)
		})
	}
}
