package wire

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"

	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/tool"
)

// Integer is a JSON number whose value is an integer, however it is written: 1, 1.0 or 1e0.
type Integer int64

// UnmarshalJSON reads a number. null leaves it unchanged.
func (i *Integer) UnmarshalJSON(data []byte) error {
	read, kind := integer(data)
	if kind != "" {
		return &json.UnmarshalTypeError{Value: kind, Type: reflect.TypeFor[int64]()}
	}
	if read != nil {
		*i = Integer(*read)
	}
	return nil
}

// Count is a number of tokens. A JSON value that is not an integer leaves it unchanged, since a response is usable
// without its counts.
type Count int64

// UnmarshalJSON reads any JSON value.
func (c *Count) UnmarshalJSON(data []byte) error {
	if read, _ := integer(data); read != nil {
		*c = Count(*read)
	}
	return nil
}

// integer returns the value of an integer, or nil for null. kind describes any other JSON value.
func integer(data []byte) (read *int64, kind string) {
	switch c := data[0]; {
	case c == '-' || c >= '0' && c <= '9':
	case c == '"':
		return nil, "string"
	case c == '{':
		return nil, "object"
	case c == '[':
		return nil, "array"
	case c == 'n':
		return nil, ""
	default:
		return nil, "bool"
	}
	if whole, err := strconv.ParseInt(string(data), 10, 64); err == nil {
		return &whole, ""
	}
	const exactly = 1 << 53 // up to here, 64-bit floats have all integers
	value, err := strconv.ParseFloat(string(data), 64)
	if err != nil || value != math.Trunc(value) || math.Abs(value) > exactly {
		return nil, "number " + tool.Shown(string(data), 64)
	}
	whole := int64(value)
	return &whole, ""
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
