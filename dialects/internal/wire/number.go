package wire

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/tool"
)

// Integer is a JSON number whose value is an integer, however it is written: 1, 1.0 or 1e0.
type Integer int64

// UnmarshalJSON reads a number. null leaves it unchanged.
func (i *Integer) UnmarshalJSON(data []byte) error {
	err := json.Unmarshal(data, (*int64)(i))
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	const exactly = 1 << 53 // up to here, 64-bit floats have all integers
	value, err := strconv.ParseFloat(string(data), 64)
	if err != nil || value != math.Trunc(value) || math.Abs(value) > exactly {
		wrong.Value = tool.Shown(wrong.Value, 64+len("number "))
		return wrong
	}
	*i = Integer(value)
	return nil
}

// Count is a number of tokens. A JSON value that is not an integer leaves it unchanged, since a response is usable
// without its counts.
type Count int64

// UnmarshalJSON reads any JSON value.
func (c *Count) UnmarshalJSON(data []byte) error {
	_ = (*Integer)(c).UnmarshalJSON(data)
	return nil
}

// Counts decodes the counts of tokens in an object, of which T has [Count] members. Anything else leaves them
// unchanged.
func Counts[T any](object json.RawMessage, counts *T) {
	read := *counts
	if !Absent(object) && decode.Unmarshal(object, &read) == nil {
		*counts = read
	}
}

// Sum adds counts of tokens. Negative counts are taken for zero, and the sum saturates.
func Sum[N ~int64](counts ...N) int64 {
	var sum int64
	for _, count := range counts {
		sum += min(max(int64(count), 0), math.MaxInt64-sum)
	}
	return sum
}
