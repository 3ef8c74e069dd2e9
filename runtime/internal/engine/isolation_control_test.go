//go:build !race

package engine

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// flaw is a reset that forgets something: after a whole one, it puts back what a run had left
// there, and says whether that differs from what a new instance has.
type flaw struct {
	name  string
	leave func(i *instance, left state) bool
}

// flaws are all of them, first the reset that does nothing.
func flaws() []flaw {
	return []flaw{
		{"everything", func(i *instance, left state) bool {
			size, memory, globals := leaveSize(i, left), leaveMemory(i, left, 0), leaveGlobals(i, left)
			return size || memory || globals
		}},
		{"the globals", leaveGlobals},
		{"the pages that the image does not have", func(i *instance, left state) bool {
			return leaveMemory(i, left, len(i.memory.image.memory))
		}},
		{"the size of the memory", leaveSize},
	}
}

func leaveGlobals(i *instance, left state) bool {
	for n, global := range i.globals {
		global.Set(left.globals[n])
	}
	return !slices.Equal(left.globals, i.memory.image.globals)
}

// leaveMemory leaves what the memory held from a byte on.
func leaveMemory(i *instance, left state, from int) bool {
	i.wroteUnseen()
	image := make([]byte, len(left.memory))
	copy(image, i.memory.image.memory)
	copy(i.memory.reserved[from:], left.memory[from:])
	return !bytes.Equal(image[from:], left.memory[from:])
}

func leaveSize(i *instance, left state) bool {
	more := len(left.memory) - len(i.memory.image.memory)
	_, grown := i.wasm.Memory().Grow(uint32(more >> 16))
	return grown && more > 0
}

// TestIsolationNoticesMissingResets is the control of TestRunsAreIsolated: with a reset that
// forgets one thing, the instance differs from a new one wherever a run left that, and so does
// what runs in it next.
func TestIsolationNoticesMissingResets(t *testing.T) {
	const each = 60
	seed := rand.Uint64()
	for _, f := range flaws() {
		for _, resumed := range []bool{false, true} {
			t.Run(f.name, func(t *testing.T) {
				p := variant{scripted{}, resumed, true}.isolation(t, seed, 0)
				leaving, noticed := 0, 0
				for n := range each {
					what := p.any()
					left, byBytes, byProbe := p.flawed(t, what, f)
					require.Equal(t, left, byBytes, "seed %#x, sequence %d: %s", seed, n, what)
					switch {
					case left && byProbe:
						noticed++
						fallthrough
					case left:
						leaving++
					default:
						require.False(t, byProbe, "seed %#x, sequence %d: %s", seed, n, what)
					}
					p.refill(t)
					require.Empty(t, p.pooled.pooled()[0].unlike(p.want, 0), "the run after the flaw is reset as a whole")
				}
				t.Logf("%d of %d runs leave something, a run after that notices %d", leaving, each, noticed)
				assert.Greater(t, leaving, each/10)
				// A run cannot notice what it writes over before it looks, as its start does.
				assert.Greater(t, noticed, leaving/4)
			})
		}
	}
}

// flawed runs a script and resets the instance with a flaw. It says whether that left
// anything, and whether the instance, and a run in it, are seen to be unlike a new one.
func (p *isolation) flawed(t *testing.T, what script, f flaw) (left, byBytes, byProbe bool) {
	t.Helper()
	i := p.pooled.pooled()[0]
	var remains state
	stop := i.watch(func() { remains = i.state() })
	got, _ := p.pooled.perform(t.Context(), what, &session{press: func() {}})
	stop()
	if len(p.pooled.pooled()) == 0 {
		return false, false, false // it is not used again
	}
	left = f.leave(i, remains)
	byBytes = i.unlike(p.want, got.usage.MemoryBytes) != ""
	return left, byBytes, p.probe(t, got.usage.MemoryBytes) != ""
}
