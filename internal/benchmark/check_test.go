package benchmark

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
)

// answerOf is the right answer to the shortest call, as the given call of an instance.
func answerOf(call int) []byte { return fmt.Appendf(nil, `{"upper":"","sum":1000,"calls":%d}`, call) }

func TestChecker(t *testing.T) {
	wrong := []byte(`{"upper":"","sum":1001,"calls":1}`)
	for name, test := range map[string]struct {
		reused  bool
		answers [][]byte
		right   int // how many answers are, before the first wrong one
	}{
		"fresh":                        {false, [][]byte{answerOf(1), answerOf(1), answerOf(1)}, 3},
		"fresh, written otherwise":     {false, [][]byte{answerOf(1), []byte(` {"calls": 1, "sum": 1000, "upper": ""}`)}, 2},
		"not fresh":                    {false, [][]byte{answerOf(1), answerOf(2)}, 1},
		"wrong at first":               {false, [][]byte{wrong}, 0},
		"wrong later":                  {false, [][]byte{answerOf(1), wrong}, 1},
		"reused":                       {true, [][]byte{answerOf(1), answerOf(2), answerOf(3)}, 3},
		"fresh though reuse is meant":  {true, [][]byte{answerOf(1), answerOf(1)}, 1},
		"reused and wrong":             {true, [][]byte{answerOf(1), []byte(`{"upper":"","sum":1001,"calls":2}`)}, 1},
		"reused and counting no calls": {true, [][]byte{[]byte(`{"upper":"","sum":1000}`)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := checker{expected: guests.NewCall(0)}
			for i, answer := range test.answers {
				call := 1
				if test.reused {
					call += i
				}
				err := c.check(answer, call)
				if i < test.right {
					require.NoError(t, err, "%s", answer)
				} else {
					require.ErrorIs(t, err, guests.ErrAnswer, "%s", answer)
				}
			}
		})
	}
}
