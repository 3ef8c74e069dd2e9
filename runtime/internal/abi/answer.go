package abi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/tool"
)

// status is the result code of a function.
type status uint32

// The statuses, each with the content of its response. 5, not_found, is reserved for functions of
// later modules.
const (
	statusOK          status = 0 // defined by the function
	statusDenied      status = 1 // the receipt
	statusInvalid     status = 2 // {"message"}
	statusLimit       status = 3 // {"limit","value","message"?}
	statusDeadline    status = 4 // {"message"}
	statusIO          status = 6 // {"message"}
	statusUnavailable status = 7 // {"message"}
)

// answer is what a function returns to the guest. The response is head followed by body.
type answer struct {
	status     status
	head, body []byte
}

// problem is an error that holds an answer with a status other than OK.
type problem struct{ answer answer }

func (p problem) Error() string { return fmt.Sprintf("status %d: %s", p.answer.status, p.answer.head) }

func denied(denial tool.Denial) error { return problem{answerJSON(statusDenied, denial)} }

func limited(limit string, value int64) error { return limitedTo(limit, value, "") }

// limitedTo is like limited, with a message.
func limitedTo(limit string, value int64, text string) error {
	return problem{answerJSON(statusLimit, struct {
		Limit   string `json:"limit"`
		Value   int64  `json:"value"`
		Message string `json:"message,omitempty"`
	}{limit, value, text})}
}

func invalid(text string) error     { return said(statusInvalid, text) }
func unavailable(text string) error { return said(statusUnavailable, text) }

// said returns a problem whose response is a message.
func said(s status, text string) error {
	return problem{answerJSON(s, struct {
		Message string `json:"message"`
	}{text})}
}

// answerJSON returns an answer with the JSON of a value that always encodes.
func answerJSON(s status, value any) answer { return answer{status: s, head: encode(value)} }

// encode is like [tryEncode], for values that always encode.
func encode(value any) []byte {
	written, err := tryEncode(value)
	if err != nil {
		panic(err) // texts, numbers and lists of them always encode
	}
	return written
}

// tryEncode returns a value's JSON, in which <, > and & are not escaped.
func tryEncode(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte{'\n'}), nil
}

// list returns elements, or an empty list instead of nil, so that JSON has [] and not null.
func list[E any](elements []E) []E {
	if elements == nil {
		return []E{}
	}
	return elements
}

// failureOf returns a failure of a package of hostfuncs as the guest may see it.
func failureOf(err error) error {
	failure, ok := errors.AsType[*hostfuncs.Error](err)
	switch {
	case !ok:
		return err
	case failure.Denial != nil:
		return denied(*failure.Denial)
	case failure.Kind == hostfuncs.ErrLimit && failure.Limit == "tool_calls":
		return limitedTo(failure.Limit, failure.Value, failure.Message)
	case failure.Kind == hostfuncs.ErrLimit:
		return limited(failure.Limit, failure.Value)
	}
	if status, ok := messages[failure.Kind]; ok {
		return said(status, cmp.Or(failure.Message, failure.Kind.Error()))
	}
	return err
}

// messages are the failures whose response is a message, with their statuses.
var messages = map[error]status{
	hostfuncs.ErrInvalid: statusInvalid, hostfuncs.ErrDeadline: statusDeadline,
	hostfuncs.ErrIO: statusIO, hostfuncs.ErrUnavailable: statusUnavailable,
}
