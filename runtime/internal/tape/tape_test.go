package tape

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/replay"
	"github.com/caisson-run/caisson/runtime/internal/extism"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/tool"
)

// memory is a guest's.
type memory []byte

// View implements [hostfuncs.Memory].
func (m memory) View(offset, length uint32) ([]byte, bool) {
	end := uint64(offset) + uint64(length)
	if end > uint64(len(m)) {
		return nil, false
	}
	return m[offset:end:end], true
}

var (
	twoNumbers = []hostfuncs.ValueType{hostfuncs.I32, hostfuncs.I32}
	oneNumber  = []hostfuncs.ValueType{hostfuncs.I32}
)

// world is a host: each of its functions has other effects.
type world struct {
	recorder *Recorder // nil in a replay
	output   *wasi.Output
	counter  byte // what the host answers depends on it
}

func unmasked(text []byte) []byte { return text }

// function returns a host function with parameters (offset, length) and one result.
func (w *world) function(name string, do func(m hostfuncs.Memory, offset, length uint32) (uint32, error)) hostfuncs.Function {
	return hostfuncs.Function{Module: wasi.ModuleName, Name: name, Params: twoNumbers, Results: oneNumber,
		Call: func(_ context.Context, m hostfuncs.Memory, stack []uint64) error {
			result, err := do(m, uint32(stack[0]), uint32(stack[1]))
			stack[0] = uint64(result)
			return err
		}}
}

func (w *world) functions() map[string]hostfuncs.Function {
	all := map[string]hostfuncs.Function{}
	for name, do := range map[string]func(m hostfuncs.Memory, offset, length uint32) (uint32, error){
		"fill": func(m hostfuncs.Memory, offset, length uint32) (uint32, error) {
			b, ok := m.View(offset, length)
			if !ok {
				return 21, nil
			}
			w.counter++
			for i := range b {
				b[i] = byte(i)*7 + w.counter
			}
			return 0, nil
		},
		"print": func(m hostfuncs.Memory, offset, length uint32) (uint32, error) {
			b, ok := m.View(offset, length)
			if !ok {
				return 21, nil
			}
			if _, err := w.output.Write([]byte("line: ")); err != nil {
				return 0, err
			}
			_, err := w.output.Write(b[length/2:])
			return length, err
		},
		// Two views that overlap, of which the second one depends on what was written to the first.
		"shift": func(m hostfuncs.Memory, offset, length uint32) (uint32, error) {
			first, ok := m.View(offset, length)
			second, fits := m.View(offset+1, length)
			if !ok || !fits {
				return 21, nil
			}
			first[0] = 9
			third, _ := m.View(offset, length+1)
			copy(second, first)
			third[len(third)-1] = w.counter
			return uint32(third[0]), nil
		},
		"exit": func(hostfuncs.Memory, uint32, uint32) (uint32, error) { return 0, &wasi.ExitError{Code: 7} },
		"deny": func(hostfuncs.Memory, uint32, uint32) (uint32, error) {
			return 0, &extism.Error{Message: "no", Denial: &tool.Denial{Permission: "network", Value: "v"}}
		},
	} {
		all[name] = w.function(name, do)
	}
	return all
}

type step struct {
	name           string
	offset, length uint32
}

// play has a guest take steps, each of which depends on the memory that the last one left.
func play(t testing.TB, w *world, tape interface {
	Call(context.Context, *hostfuncs.Function, hostfuncs.Memory, []uint64) error
}, m memory, steps []step) (results []uint64, err error) {
	functions := w.functions()
	for _, s := range steps {
		f := functions[s.name]
		stack := []uint64{uint64(s.offset) | 1<<40, uint64(s.length)} // the upper half means nothing
		if err := tape.Call(t.Context(), &f, m, stack); err != nil {
			return results, err
		}
		results = append(results, stack[0])
	}
	return results, nil
}

var allSteps = []step{{"fill", 10, 200}, {"shift", 20, 50}, {"print", 0, 100}, {"fill", 10, 200}, {"fill", 900, 200}, {"shift", 300, 8}, {"print", 990, 10}, {"print", 5, 0}, {"fill", 10, 3}}

func record(t testing.TB, m memory, steps []step) (w *world, log []byte, results []uint64, err error) {
	w = &world{output: &wasi.Output{Limit: 1 << 10, Strict: true}}
	w.recorder = NewRecorder(unmasked)
	w.output.OnWrite = func(data []byte) { w.recorder.Output(0, data) }
	results, err = play(t, w, w.recorder, m, steps)
	log, count, why := w.recorder.Result()
	require.Empty(t, why)
	require.Equal(t, len(steps), count)
	return w, log, results, err
}

// silent is a world whose functions must not be called.
func silent() *world { return &world{output: &wasi.Output{Limit: 1 << 10, Strict: true}, counter: 99} }

func replayed(t testing.TB, log []byte, m memory, steps []step) (w *world, p *Player, results []uint64, err error) {
	w = silent()
	p, err = NewPlayer(log)
	require.NoError(t, err)
	p.Outputs, p.Charge = []io.Writer{w.output}, func(context.Context, int64) {}
	results, err = play(t, w, p, m, steps)
	return w, p, results, err
}

// TestPlayerDoesWhatTheHostDid: memory, outputs, results and the end are the same after a replay, and no function is
// called.
func TestPlayerDoesWhatTheHostDid(t *testing.T) {
	for name, last := range map[string][]step{"returned": nil, "exited": {{"exit", 1, 2}}, "denied": {{"deny", 1, 2}},
		"too long": slices.Repeat([]step{{"print", 0, 600}}, 5)[:4]} {
		t.Run(name, func(t *testing.T) {
			steps := slices.Concat(allSteps, last)
			was, is := make(memory, 1000), make(memory, 1000)
			w, log, results, err := record(t, was, steps)
			again, p, resultsAgain, errAgain := replayed(t, log, is, steps)
			assert.Equal(t, was, is)
			assert.Equal(t, results, resultsAgain)
			assert.Equal(t, err, errAgain)
			assert.Equal(t, w.output.Bytes, again.output.Bytes)
			assert.EqualValues(t, 99, again.counter)
			assert.NoError(t, p.Close())
		})
	}
}

// TestEqualBytesAreKeptOnce: what the guest gets twice takes room once.
func TestEqualBytesAreKeptOnce(t *testing.T) {
	length := func(times int) int {
		r, m := NewRecorder(unmasked), make(memory, 100_000)
		f := (&world{}).function("read", func(m hostfuncs.Memory, offset, length uint32) (uint32, error) {
			b, _ := m.View(offset, length)
			for i := range b {
				b[i] = byte(i * i >> 3)
			}
			return 0, nil
		})
		for at := range times {
			require.NoError(t, r.Call(t.Context(), &f, m, []uint64{uint64(at) * 9999, 9000}))
		}
		log, _, why := r.Result()
		require.Empty(t, why)
		return len(log)
	}
	assert.Less(t, length(10), length(1)+10*40)
}

// TestDivergence: the first step that differs is named, whatever differs.
func TestDivergence(t *testing.T) {
	steps := allSteps
	_, log, _, _ := record(t, make(memory, 1000), steps)
	for name, c := range map[string]struct {
		change func(steps []step, m memory) []step
		want   string
	}{
		"another function":  {func(s []step, _ memory) []step { s[2].name = "fill"; return s }, "step 3: the guest called fill(0, 100), the record has print(0, 100)"},
		"other parameters":  {func(s []step, _ memory) []step { s[3].offset = 11; return s }, "step 4: the guest called fill(11, 200), the record has fill(10, 200)"},
		"other memory":      {func(s []step, m memory) []step { m[5] = 1; return s }, "step 3: the guest called print(0, 100) as in the record, but with other bytes in its memory"},
		"more steps":        {func(s []step, _ memory) []step { return append(s, step{"exit", 3, 4}) }, "step 10: the guest called exit(3, 4), the record has no more steps"},
		"fewer steps":       {func(s []step, _ memory) []step { return s[:8] }, "step 9: the guest ended, the record has fill(10, 3)"},
		"nothing (control)": {func(s []step, _ memory) []step { return s }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := make(memory, 1000)
			_, p, _, err := replayed(t, log, m, c.change(slices.Clone(steps), m))
			if err == nil {
				err = p.Close()
			}
			var differs *replay.Divergence
			if c.want == "" {
				assert.NoError(t, err)
			} else if assert.ErrorAs(t, err, &differs) {
				assert.Equal(t, c.want, differs.Error())
				assert.Equal(t, err, p.Close(), "a run that has diverged stays so")
			}
		})
	}
}

// TestUnknownEndsAreNotReplayable: an error of the host, such as the end of a deadline, is not repeated.
func TestUnknownEndsAreNotReplayable(t *testing.T) {
	r := NewRecorder(unmasked)
	f := (&world{}).function("wait", func(hostfuncs.Memory, uint32, uint32) (uint32, error) { return 0, context.DeadlineExceeded })
	assert.ErrorIs(t, r.Call(t.Context(), &f, make(memory, 10), []uint64{0, 0}), context.DeadlineExceeded)
	_, _, why := r.Result()
	assert.Equal(t, "the host ended it in wait, which a replay does not repeat", why)
}

// TestAttackRecorderThatCopiesMemory: a guest that has the host look at much memory in one call, or often, does not have
// the recorder keep or copy it. The control is below the bounds.
func TestAttackRecorderThatCopiesMemory(t *testing.T) {
	m := make(memory, maxViewed)
	for name, c := range map[string]struct {
		views, length, distance int
		why                     string
	}{
		"overlapping views":  {maxViews - 1, maxViewed / 2, 16, "32 MiB or 4096 places"},
		"many views":         {maxViews + 1, 1, 2, "32 MiB or 4096 places"},
		"control":            {maxViews - 1, 1, 2, ""},
		"one view (control)": {maxViews, maxViewed / 2, 0, ""},
	} {
		r, copied := NewRecorder(unmasked), 0
		f := (&world{}).function("scatter", func(m hostfuncs.Memory, _, _ uint32) (uint32, error) {
			for i := range c.views {
				if _, ok := m.View(uint32(i*c.distance), uint32(c.length)); !ok {
					return 1, errors.New("outside")
				}
				held := 0
				for _, v := range r.views {
					held += len(v.before)
				}
				copied = max(copied, held)
			}
			return 0, nil
		})
		require.NoError(t, r.Call(t.Context(), &f, m, []uint64{0, 0}))
		_, _, why := r.Result()
		if c.why == "" {
			assert.Empty(t, why, name)
		} else {
			assert.Contains(t, why, c.why, name)
		}
		assert.LessOrEqual(t, copied, maxViewed, name)
	}
}

// FuzzPlayer: a damaged record ends a replay with an error, and never panics or writes outside of the guest's memory.
func FuzzPlayer(f *testing.F) {
	_, log, _, _ := record(f, make(memory, 1000), allSteps)
	f.Add(log)
	_, log, _, _ = record(f, make(memory, 1000), append(slices.Clone(allSteps), step{"deny", 1, 2}))
	f.Add(log)
	f.Add([]byte{0, 0, 1, 'x', 2, 1, 2, opKernel, 0, 0})
	f.Add([]byte{0, 0, 1, 'x', 2, 1, 2, opCharge, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, log []byte) {
		p, err := NewPlayer(log)
		if err != nil {
			return
		}
		guest := make(memory, 1100)
		w := silent()
		p.Outputs, p.Charge = []io.Writer{w.output}, func(context.Context, int64) {}
		if _, err := play(t, w, p, guest[:1000], allSteps); err == nil {
			err = p.Close()
			_ = fmt.Sprint(err)
		}
		assert.True(t, bytes.Equal(make([]byte, 100), guest[1000:]))
		assert.EqualValues(t, 99, w.counter, "a host function was called")
	})
}
