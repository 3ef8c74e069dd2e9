package benchmark

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
)

// checker checks the answers of one caller. It takes an answer apart once and compares
// the others with it, since taking apart would take longer than a call.
type checker struct {
	expected guests.Call
	correct  []byte
}

// check checks the answer to the given call of an instance, which counts it as that.
func (c *checker) check(output []byte, call int) error {
	if call > 1 {
		var err error
		if output, err = asFirst(output, call); err != nil {
			return err
		}
	}
	if c.correct != nil && bytes.Equal(output, c.correct) {
		return nil
	}
	if err := c.expected.Check(output); err != nil {
		return err
	}
	c.correct = bytes.Clone(output)
	return nil
}

// asFirst returns the answer that the first call of an instance would have got, if this
// answer is that of the given call.
func asFirst(output []byte, call int) ([]byte, error) {
	const key = `"calls":`
	at := bytes.LastIndex(output, []byte(key))
	if at < 0 {
		return nil, fmt.Errorf("%w: it counts no calls", guests.ErrAnswer)
	}
	head, count := output[:at+len(key)], bytes.Trim(output[at+len(key):], " \n}")
	if string(count) != strconv.Itoa(call) {
		return nil, fmt.Errorf("%w: it counts %q calls instead of %d", guests.ErrAnswer, count, call)
	}
	return append(head[:len(head):len(head)], "1}"...), nil
}
