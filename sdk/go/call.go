package caisson

import (
	"bytes"
	"encoding/json"
	"sync"
)

// hostFunction is a function that the host offers.
type hostFunction struct {
	name string // as errors have it
	// call makes the call. The result holds the status and the length of the response.
	call func(request, body []byte) (result uint64, err error)
	// read copies the next bytes of the response, and returns how many.
	read func(buffer []byte) int
}

// turn is taken for a call and the reading of its response, of which the host holds one for
// the whole module: a goroutine that allocates may have to let others run.
var turn sync.Mutex

// ask calls the function and returns its response, unless that is an error.
func (f hostFunction) ask(request any, body []byte) ([]byte, error) {
	text, err := encode(request)
	if err != nil {
		return nil, err
	}
	turn.Lock()
	defer turn.Unlock()
	result, err := f.call(text, body)
	if err != nil {
		return nil, err
	}
	response, err := f.readAll(int(uint32(result)))
	if err != nil {
		return nil, err
	}
	if status := Status(result >> 32); status != statusOK {
		return nil, f.failure(status, response)
	}
	return response, nil
}

// answer calls a function of which the response is JSON.
func answer[T any](f hostFunction, request any, body []byte) (value T, err error) {
	response, err := f.ask(request, body)
	if err == nil && json.Unmarshal(response, &value) != nil {
		err = f.malformed()
	}
	return value, err
}

// encode returns a request's JSON, in which <, > and & stand for themselves: their escapes would take
// six times their room, and the length of requests is bounded.
func encode(request any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(request); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte{'\n'}), nil
}

func (f hostFunction) readAll(length int) ([]byte, error) {
	response := make([]byte, length)
	for rest := response; len(rest) > 0; {
		n := f.read(rest)
		if n <= 0 || n > len(rest) {
			return nil, f.malformed()
		}
		rest = rest[n:]
	}
	return response, nil
}

// failure reads the response to a call that was not answered with success.
func (f hostFunction) failure(status Status, response []byte) error {
	failure := &Error{Op: f.name, Status: status}
	var err error
	switch status {
	case Denied:
		failure.Denial = &Denial{}
		err = json.Unmarshal(response, failure.Denial)
	case Limit:
		limit := wireLimit{&failure.LimitName, &failure.LimitValue, &failure.Message}
		err = json.Unmarshal(response, &limit)
	default:
		message := wireMessage{&failure.Message}
		err = json.Unmarshal(response, &message)
	}
	if err != nil {
		return f.malformed()
	}
	return failure
}

// malformed is the error for an answer that does not follow the protocol.
func (f hostFunction) malformed() error {
	return &Error{Op: f.name, Status: IO, Message: "the host's answer is malformed"}
}

type wireLimit struct {
	Limit *string `json:"limit"`
	Value *int64  `json:"value"`
	// Message is there where name and value do not say it.
	Message *string `json:"message"`
}

type wireMessage struct {
	Message *string `json:"message"`
}
