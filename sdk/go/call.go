package caisson

import (
	"bytes"
	"encoding/json"
	"sync"
)

type hostFunction struct {
	name string // for errors
	// call calls the function. The result combines the status and the length of the response.
	call func(request, body []byte) (result uint64, err error)
	// read copies the next bytes of the response and returns their number.
	read func(buffer []byte) int
}

// turn guards a call together with reading its response, because the host keeps only one response for
// the whole module, and other goroutines may run whenever one allocates.
var turn sync.Mutex

// ask calls the function and returns its response or the host's error.
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

// answer calls a function whose response is JSON.
func answer[T any](f hostFunction, request any, body []byte) (value T, err error) {
	response, err := f.ask(request, body)
	if err == nil && json.Unmarshal(response, &value) != nil {
		err = f.malformed()
	}
	return value, err
}

// encode encodes a request without escaping <, > and &, because escapes are six times as long and the
// length of requests is limited.
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

// failure parses the response to a failed call.
func (f hostFunction) failure(status Status, response []byte) error {
	failure := &Error{Op: f.name, Status: status}
	var err error
	switch status {
	case Denied:
		failure.Denial = &Denial{}
		err = json.Unmarshal(response, failure.Denial)
	case Limit:
		err = json.Unmarshal(response, &wireLimit{&failure.LimitName, &failure.LimitValue, &failure.Message})
	default:
		err = json.Unmarshal(response, &wireMessage{&failure.Message})
	}
	if err != nil {
		return f.malformed()
	}
	return failure
}

// malformed returns the error for a response that violates the protocol.
func (f hostFunction) malformed() error {
	return &Error{Op: f.name, Status: IO, Message: "the host's answer is malformed"}
}

type wireLimit struct {
	Limit *string `json:"limit"`
	Value *int64  `json:"value"`
	// Message is set if the name and the value do not explain the error.
	Message *string `json:"message"`
}

type wireMessage struct {
	Message *string `json:"message"`
}
