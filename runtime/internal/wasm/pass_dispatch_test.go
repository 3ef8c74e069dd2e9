package wasm

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Branches are led to places that are ahead, and to no others. Those that stay ways round a
// loop test the counter, and so do headers of loops.
func TestBranchesAreLedAhead(t *testing.T) {
	// A loop, three blocks and a table; then the code at place 0 with the end of the block
	// that leads to place 1, and so on. Labels of the loop are 2, 1 and 0 there.
	dispatch := func(table, first, second, third []byte) []byte {
		return concat(raw(0x03, 0x40, 0x02, 0x40, 0x02, 0x40, 0x02, 0x40), table, raw(0x0b),
			first, raw(0x0b), second, raw(0x0b), third, raw(0x0b, 0x20, 1))
	}
	table := raw(0x20, 0, 0x0e, 2, 0, 1, 2)
	to := func(value, loop byte) []byte { return raw(0x41, value, 0x21, 0, 0x0c, loop) }
	const negative = 0x7f // -1
	tests := []struct {
		title string
		body  []byte
		tests int
	}{
		{"control: without a branch", dispatch(table, nil, nil, nil), 1},
		{"the next place", dispatch(table, to(1, 2), nil, nil), 1},
		{"a place ahead", dispatch(table, to(2, 2), nil, nil), 1},
		{"the same place", dispatch(table, to(0, 2), nil, nil), 2},
		{"the same place, further down", dispatch(table, nil, to(1, 1), nil), 2},
		{"a place behind", dispatch(table, nil, nil, to(1, 0)), 2},
		{"behind the table's end", dispatch(table, to(9, 2), nil, nil), 1},
		{"a negative number", dispatch(table, to(negative, 2), nil, nil), 1},
		{"behind the table's end, the first place", dispatch(raw(0x20, 0, 0x0e, 2, 0, 1, 0), to(9, 2), nil, nil), 2},
		{"two labels of one place", dispatch(raw(0x20, 0, 0x0e, 3, 0, 0, 2, 1), to(2, 2), to(3, 1), nil), 2},
		{"the table leads back to the loop", dispatch(raw(0x20, 0, 0x0e, 2, 0, 3, 2), to(1, 2), nil, nil), 2},
		{"the table leads out of the loop", concat(raw(0x02, 0x40),
			dispatch(raw(0x20, 0, 0x0e, 2, 4, 1, 2), to(1, 2), nil, nil), raw(0x1a, 0x0b, 0x20, 1)), 1},
		{"the table leads out of the loop, and so does the branch", concat(raw(0x02, 0x40),
			dispatch(raw(0x20, 0, 0x0e, 2, 0, 4, 2), to(1, 2), nil, nil), raw(0x1a, 0x0b, 0x20, 1)), 2},
		{"another local", dispatch(table, raw(0x41, 1, 0x21, 1, 0x0c, 2), nil, nil), 2},
		{"no constant", dispatch(table, raw(0x20, 1, 0x21, 0, 0x0c, 2), nil, nil), 2},
		{"something in between", dispatch(table, raw(0x41, 1, 0x21, 0, 0x01, 0x0c, 2), nil, nil), 2},
		{"a block's end in between", dispatch(table, raw(0x02, 0x40, 0x41, 1, 0x21, 0, 0x0b, 0x0c, 2), nil, nil), 2},
		{"a condition", dispatch(table, raw(0x20, 1, 0x41, 1, 0x21, 0, 0x0d, 2), nil, nil), 2},
		{"from within blocks", dispatch(table, raw(0x02, 0x40, 0x20, 1, 0x04, 0x40, 0x41, 1, 0x21, 0, 0x0c, 4, 0x0b, 0x0b), nil, nil), 1},
		{"another block in the place of one that ended", dispatch(table, nil, nil, raw(0x02, 0x40, 0x41, 1, 0x21, 0, 0x0c, 1, 0x0b)), 2},
		{"from a loop within, which has a table, too", dispatch(table, raw(
			0x03, 0x40, 0x02, 0x40, 0x20, 1, 0x0e, 0, 0, 0x0b, 0x41, 1, 0x21, 0, 0x0c, 3, 0x0b), nil, nil), 2},
		{"the same, behind the outer table's end", dispatch(table, raw(
			0x03, 0x40, 0x02, 0x40, 0x20, 1, 0x0e, 0, 0, 0x0b, 0x41, 9, 0x21, 0, 0x0c, 3, 0x0b), nil, nil), 2},
		{"behind a loop within", dispatch(table, raw(
			0x03, 0x40, 0x02, 0x40, 0x20, 0, 0x0e, 0, 0, 0x0b, 0x0b), to(2, 1), to(2, 0)), 3},
		{"something in front of the table", dispatch(raw(0x01, 0x20, 0, 0x0e, 2, 0, 1, 2), to(1, 2), nil, nil), 2},
		{"a loop with a result", raw(0x03, 0x7f, 0x02, 0x40, 0x02, 0x40, 0x20, 0, 0x0e, 1, 0, 1, 0x0b,
			0x41, 1, 0x21, 0, 0x0c, 1, 0x0b, 0x20, 1, 0x0b), 1},
		{"a loop with a parameter", raw(0x20, 1, 0x03, 0, 0x02, 0x40, 0x02, 0x40, 0x20, 0, 0x0e, 1, 0, 1, 0x0b,
			0x20, 1, 0x41, 1, 0x21, 0, 0x0c, 1, 0x0b, 0x0b), 2},
		{"a block with a result around the places", raw(0x03, 0x40, 0x02, 0x7f, 0x02, 0x40, 0x02, 0x40, 0x20, 0, 0x0e, 1, 0, 1, 0x0b,
			0x41, 1, 0x21, 0, 0x0c, 2, 0x0b, 0x41, 5, 0x0b, 0x1a, 0x0b, 0x20, 1), 1},
		{"a loop with a place that takes a value", raw(0x03, 0x40, 0x02, 0x7f, 0x20, 0, 0x20, 0, 0x0e, 0, 0, 0x0b, 0x1a,
			0x41, 0, 0x21, 0, 0x0c, 0, 0x0b, 0x20, 1), 2},
	}
	for _, test := range tests {
		t.Run(test.title, func(t *testing.T) {
			source := sample(raw(0x20, 0), test.body)
			a, err := check(source, Bounds{}, Features{})
			require.NoError(t, err)
			for _, passes := range passesOf() {
				checkRewritten(t, source, a, passes)
			}
			got, err := Rewrite(source, a, Passes{Meter: true})
			require.NoError(t, err)
			assert.Equal(t, test.tests, strings.Count(printed(t, got.Source), "i32.lt_s"))
		})
	}
}
