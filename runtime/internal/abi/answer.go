package abi

import (
	"fmt"

	"github.com/caisson-run/caisson/tool"
)

// status says how a function went.
type status uint32

// The statuses, and what the response to each holds. 5, not_found, belongs to functions of
// later modules.
const (
	statusOK          status = 0 // as the function has it
	statusDenied      status = 1 // the receipt
	statusInvalid     status = 2 // {"message"}
	statusLimit       status = 3 // {"limit","value","message"?}
	statusDeadline    status = 4 // {"message"}
	statusIO          status = 6 // {"message"}
	statusUnavailable status = 7 // {"message"}
)

// answer is what a function returns to the guest. The response is head and body together.
type answer struct {
	status     status
	head, body []byte
}

// problem is an answer that is not OK, as an error.
type problem struct{ answer answer }

func (p problem) Error() string { return fmt.Sprintf("status %d: %s", p.answer.status, p.answer.head) }

func denied(denial tool.Denial) error { return problem{answerJSON(statusDenied, denial)} }

func limited(limit string, value int64) error { return limitedTo(limit, value, "") }

// limitedTo is a limit that is told in words, too.
func limitedTo(limit string, value int64, text string) error {
	return problem{answerJSON(statusLimit, struct {
		Limit   string `json:"limit"`
		Value   int64  `json:"value"`
		Message string `json:"message,omitempty"`
	}{limit, value, text})}
}

func invalid(text string) error     { return said(statusInvalid, text) }
func unavailable(text string) error { return said(statusUnavailable, text) }

// said is a problem that is told in words.
func said(s status, text string) error {
	return problem{answerJSON(s, struct {
		Message string `json:"message"`
	}{text})}
}

// answerJSON encodes what holds nothing that JSON could not say.
func answerJSON(s status, value any) answer { return answer{status: s, head: encode(value)} }

// encode is [tryEncode] for what always encodes.
func encode(value any) []byte {
	written, err := tryEncode(value)
	if err != nil {
		panic(err) // texts, numbers and lists of them always encode
	}
	return written
}
