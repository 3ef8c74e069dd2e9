package guests

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ErrAnswer means that the tool answered something else than the call asked for.
var ErrAnswer = errors.New("guests: wrong answer")

// Call is one call of the JSON tool. It does not change and may be used concurrently.
type Call struct {
	Input []byte // what the tool reads
	upper string
	sum   int64
}

// NewCall makes a call whose input is as long as wanted, in bytes; about half is text and
// half is numbers. The shortest has 28 bytes. The text is ASCII, which every language
// puts in capital letters alike.
func NewCall(length int) Call {
	const around = len(`{"text": "", "nums": [1000]}`)
	var c Call
	numbers := []byte("1000")
	c.sum = 1000
	for number := int64(1001); len(numbers) < (length-around)/2; number = 1000 + (number-999)%9000 {
		numbers = fmt.Appendf(numbers, ",%d", number)
		c.sum += number
	}
	room := max(length-around-(len(numbers)-len("1000")), 0)
	text := strings.Repeat("the quick brown fox ", room/20+1)[:room]
	c.upper = strings.ToUpper(text)
	c.Input = fmt.Appendf(nil, `{"text": "%s", "nums": [%s]}`, text, numbers)
	return c
}

// Check tells whether the tool's output answers the call as the first one of its
// instance: an output that counts more calls has seen what an earlier call left.
func (c Call) Check(output []byte) error {
	var answer struct {
		Upper string `json:"upper"`
		Sum   int64  `json:"sum"`
		Calls int64  `json:"calls"`
	}
	if err := json.Unmarshal(output, &answer); err != nil {
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	switch {
	case answer.Upper != c.upper:
		return fmt.Errorf("%w: %d letters of text instead of %d", ErrAnswer, len(answer.Upper), len(c.upper))
	case answer.Sum != c.sum:
		return fmt.Errorf("%w: a sum of %d instead of %d", ErrAnswer, answer.Sum, c.sum)
	case answer.Calls != 1:
		return fmt.Errorf("%w: call %d of its instance instead of the first", ErrAnswer, answer.Calls)
	}
	return nil
}
