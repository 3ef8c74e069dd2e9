package engine

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
)

// machine is a function as Go's compiler writes them: a loop around places, which branches
// reach by their numbers through a table. Each place adds to a sum, and ends the function
// when it was the last of a number of steps.
type machine struct {
	table  []int // from numbers to places, the last for all that are larger, and so for negative ones
	places []site
	entry  int // the number of the first place
	steps  int
}

// site is the rest of a place's behavior.
type site struct {
	calls bool // calls the host
	leave leaving
	to    int  // a number
	bit   byte // of the sum, to be set for a condition
}

// leaving says where control continues after a place.
type leaving int

const (
	onward    leaving = iota // with the next place
	always                   // elsewhere
	sometimes                // elsewhere, if a bit of the sum is set
	branchIf                 // the same, as one conditional branch
	leavings                 // their number
)

func randomMachine(random *rand.Rand) machine {
	n := 2 + random.IntN(7)
	m := machine{places: make([]site, n), entry: random.IntN(n + 1), steps: 1 + random.IntN(20_000)}
	numbers := 1 + random.IntN(2*n)
	if random.IntN(4) == 0 {
		numbers += 200 // more than a byte of LEB128 can hold
	}
	for range numbers {
		m.table = append(m.table, random.IntN(n))
	}
	for i := range m.places {
		m.places[i] = site{calls: random.IntN(3) == 0, leave: leaving(random.IntN(int(leavings))),
			to: random.IntN(len(m.table) + 1), bit: byte(random.IntN(5))}
		if random.IntN(4) == 0 {
			m.places[i].to = -1 - random.IntN(1<<random.IntN(20))
		}
	}
	return m
}

// find returns the place of a number.
func (m machine) find(number int) int { return m.table[min(uint32(number), uint32(len(m.table)-1))] }

// run returns the machine's final sum and the number of instructions that it executes.
func (m machine) run() (sum uint32, instructions int64) {
	const (
		around = 4 + 4 // the instructions before and after the loop
		table  = 2
		step   = 6 + 6
	)
	at, left := m.find(m.entry), m.steps
	instructions = around + table
	for {
		here := m.places[at]
		sum = sum*31 + uint32(at) + 1
		left--
		instructions += step
		if left == 0 {
			return sum, instructions + 1
		}
		if here.calls {
			instructions++
		}
		taken := sum>>here.bit&1 != 0
		switch {
		case here.leave == onward:
		case here.leave == always:
			instructions += 3
			taken = true
		case here.leave == branchIf:
			instructions += 6
		case taken:
			instructions += 4 + 3
		default:
			instructions += 4
		}
		switch {
		case here.leave != onward && taken:
			instructions += table
			at = m.find(here.to)
		case at+1 == len(m.places):
			return sum, instructions + 1
		default:
			at++
		}
	}
}

// program returns a program that traps unless the machine's final sum is the given one.
func (m machine) program(sum uint32) program {
	n := len(m.places)
	body := join([]byte{0x41}, signed(m.entry), []byte{0x21, 0, 0x41}, signed(m.steps), []byte{0x21, 2, 0x02, 0x40, 0x03, 0x40},
		bytes.Repeat([]byte{0x02, 0x40}, n), []byte{0x20, 0, 0x0e}, leb(len(m.table)-1))
	for _, label := range m.table {
		body = append(body, byte(label))
	}
	for i, p := range m.places {
		loop := byte(n - 1 - i)
		body = join(body, []byte{0x0b, 0x20, 1, 0x41, 31, 0x6c, 0x41, byte(i + 1), 0x6a, 0x21, 1, // sum = sum*31 + i + 1
			0x20, 2, 0x41, 1, 0x6b, 0x22, 2, 0x45, 0x04, 0x40, 0x0c, loop + 2, 0x0b}, p.code(loop))
	}
	body = join(body, []byte{0x0c, 1, 0x0b, 0x0b, 0x20, 1, 0x41}, word(sum), []byte{0x47, 0x04, 0x40, 0x00, 0x0b})
	return program{body: body, memory: -1, locals: 3, importing: true}
}

// code returns the code of a place that is not the last one, in a loop with a label.
func (p site) code(loop byte) (code []byte) {
	if p.calls {
		code = append(code, callImport...)
	}
	jump := func(label byte) []byte { return join([]byte{0x41}, signed(p.to), []byte{0x21, 0, 0x0c, label}) }
	condition := []byte{0x20, 1, 0x41, 1 << p.bit, 0x71} // sum & 1<<bit
	switch p.leave {
	case always:
		return join(code, jump(loop))
	case sometimes:
		return join(code, condition, []byte{0x04, 0x40}, jump(loop+1), []byte{0x0b})
	case branchIf:
		return join(code, []byte{0x41}, signed(p.to), []byte{0x21, 0}, condition, []byte{0x0d, loop})
	default:
		return code
	}
}

// word writes 32 bits as a signed LEB128 of five bytes.
func word(bits uint32) []byte {
	var out []byte
	value := int64(int32(bits))
	for range 4 {
		out = append(out, byte(value)|0x80)
		value >>= 7
	}
	return append(out, byte(value)&0x7f)
}

// TestDispatchIsExact: rewritten functions with a table of places compute the same as before, and take a unit for each
// instruction, including those that the rewritten branches skip.
func TestDispatchIsExact(t *testing.T) {
	calls := 0
	e := newEngine(t, Options{}, func(context.Context, hostfuncs.Memory, []uint64) error {
		calls++
		return nil
	})
	random := rand.New(rand.NewPCG(1, 2))
	long := 0
	for n := range 500 {
		m := randomMachine(random)
		sum, instructions := m.run()
		title := fmt.Sprintf("%d: %+v", n, m)
		module, err := e.Compile(t.Context(), m.program(sum).bytes())
		require.NoError(t, err, title)
		usage, err := module.Run(t.Context(), fuelled(1<<40))
		require.NoError(t, err, title)
		require.Equal(t, instructions, usage.Fuel, title)
		_, err = module.Run(t.Context(), fuelled(instructions-1))
		require.ErrorIs(t, err, ErrFuel, title)
		if instructions > mostSlice {
			long++
		}
	}
	assert.Greater(t, long, 100, "control: many take several slices")
	assert.Greater(t, calls, 100_000)
}

// TestDispatchingLoopsEnd: a loop through a table, whether it goes back from one place or
// from another, is stopped.
func TestDispatchingLoopsEnd(t *testing.T) {
	e := newEngine(t, Options{}, func(context.Context, hostfuncs.Memory, []uint64) error { return nil })
	for name, places := range map[string][]site{
		"back":           {{leave: always, to: 1}, {leave: always, to: 0}},
		"to itself":      {{leave: always, to: 0}},
		"ahead and back": {{leave: always, to: 2}, {}, {leave: branchIf, to: 0}, {leave: always, to: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine{places: places, steps: 1 << 30}
			for i := range places {
				m.table = append(m.table, i)
			}
			module := compile(t, e, m.program(0))
			_, err := module.Run(t.Context(), fuelled(10_000_000))
			require.ErrorIs(t, err, ErrFuel)
		})
	}
}
