package extism

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/network"
	"github.com/caisson-run/caisson/runtime/internal/inside"
)

// function is a host function of the kernel. run returns the function's result, which is ignored if the function has
// none.
type function struct {
	name, params, results string
	depends               string // the function by which plug-ins call it, if it depends on the call
	run                   func(c *call) (int64, error)
}

// nothing is the result of a function that holds nothing for take.
const nothing = -1

func functions() []hostfuncs.Function {
	var all []hostfuncs.Function
	for _, f := range []function{
		{"input", "ii", "l", "an input function", input},
		{"config", "ii", "l", "", config},
		{"variable", "ii", "l", "var_get", variable},
		{"set_variable", "iiii", "", "var_set", setVariable},
		{"delete_variable", "ii", "", "var_set", deleteVariable},
		{"request", "iiii", "l", "http_request", request},
		{"status", "", "i", "http_status_code", status},
		{"headers", "", "l", "http_headers", headers},
		{"log_level", "", "i", "", func(*call) (int64, error) { return logLevel, nil }},
		{"log", "iii", "", "a log function", log},
		{"take", "ii", "", "", take},
		{"fault", "iil", "", "", fault},
	} {
		all = append(all, f.hostFunction())
	}
	return all
}

// errNoSession means that a plug-in ran without With.
var errNoSession = errors.New("extism: the context holds no session")

func (f function) hostFunction() hostfuncs.Function {
	return hostfuncs.Function{
		Module: hostModule, Name: f.name, Params: valueTypes(f.params), Results: valueTypes(f.results),
		Call: func(ctx context.Context, memory hostfuncs.Memory, stack []uint64) error {
			session, ok := inside.Of[Session](ctx)
			if !ok {
				return errNoSession
			}
			if session.Starting && f.depends != "" {
				return &StartError{f.depends}
			}
			session.call = call{ctx, session, memory, stack}
			result, err := f.run(&session.call)
			if err == nil && f.results != "" {
				stack[0] = uint64(result)
			}
			return err
		},
	}
}

type call struct {
	ctx     context.Context
	session *Session
	memory  hostfuncs.Memory
	stack   []uint64
}

// bytes returns the bytes whose offset and length are parameters i and i+1; see at.
func (c *call) bytes(i int) ([]byte, error) { return c.at(c.stack[i], c.stack[i+1]) }

// at returns bytes of the kernel's memory, which they alias. The offset and the length are of 32 bits. The
// kernel passes none that are outside its memory.
func (c *call) at(offset, length uint64) ([]byte, error) {
	bytes, ok := c.memory.View(uint32(offset), uint32(length))
	if !ok {
		return nil, fmt.Errorf("extism: the kernel passed %d bytes at %d, which are outside its memory", uint32(length),
			uint32(offset))
	}
	return bytes, nil
}

// text is like bytes, but returns a copy, and fails if it has more than limit bytes.
func (c *call) text(i int, function, what string, limit int) (string, error) {
	bytes, err := c.bytes(i)
	if err != nil {
		return "", err
	}
	if len(bytes) > limit {
		return "", errorf("it passed a %s of %d bytes to %s, which takes %d", what, len(bytes), function, limit)
	}
	return string(bytes), nil
}

// hold keeps bytes for take, and returns their length.
func (c *call) hold(bytes []byte) (int64, error) {
	c.session.held = bytes
	return int64(len(bytes)), nil
}

func take(c *call) (int64, error) {
	bytes, err := c.bytes(0)
	if err != nil {
		return 0, err
	}
	held := c.session.held
	c.session.held = nil
	return 0, c.copy(bytes, held)
}

// copy copies bytes to the kernel's memory, as many as fit, and looks at the deadline in between.
func (c *call) copy(to, from []byte) error {
	for at := 0; at < len(to) && at < len(from); at += copied {
		if at > 0 && c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
		copy(to[at:], from[at:min(at+copied, len(from))])
	}
	return nil
}

// copied is the number of bytes that are copied between checks of the deadline.
const copied = 1 << 20

// input copies the input to where the kernel has room, or holds it if it does not fit.
func input(c *call) (int64, error) {
	s := c.session
	if s.OnInput != nil {
		s.OnInput()
		s.OnInput = nil
	}
	switch length := len(s.Input); {
	case length == 0:
		return 0, nil
	case uint64(length) > uint64(uint32(c.stack[1])):
		return c.hold(s.Input)
	}
	// Only now: without room, the offset may be past the end of memory.
	room, err := c.bytes(0)
	if err != nil {
		return 0, err
	}
	return int64(len(s.Input)), c.copy(room, s.Input)
}

// maxName is the maximum length in bytes of the name of a variable or of a value of the configuration.
const maxName = 64 << 10

func config(c *call) (int64, error) { return lookUp(c, "config_get", c.session.Config) }

func variable(c *call) (int64, error) { return lookUp(c, "var_get", c.session.variables) }

// lookUp holds the value of a name, if there is one.
func lookUp[V string | []byte](c *call, function string, values map[string]V) (int64, error) {
	name, err := c.text(0, function, "name", maxName)
	if err != nil {
		return 0, err
	}
	value, found := values[name]
	if !found {
		return nothing, nil
	}
	return c.hold([]byte(value))
}

// variableBytes is the number of bytes that a variable counts for in addition to its name and its value.
const variableBytes = 40

func setVariable(c *call) (int64, error) {
	name, err := c.text(0, "var_set", "name", maxName)
	if err != nil {
		return 0, err
	}
	value, err := c.bytes(2)
	if err != nil {
		return 0, err
	}
	s := c.session
	taken := s.taken - s.variableSize(name) + len(name) + len(value) + variableBytes
	if taken > s.MaxVariables {
		return 0, errorf("it set more than %d bytes of variables", s.MaxVariables)
	}
	if s.variables == nil {
		s.variables = map[string][]byte{}
	}
	s.variables[name], s.taken = bytes.Clone(value), taken
	return 0, nil
}

func (s *Session) variableSize(name string) int {
	value, found := s.variables[name]
	if !found {
		return 0
	}
	return len(name) + len(value) + variableBytes
}

func deleteVariable(c *call) (int64, error) {
	name, err := c.text(0, "var_set", "name", maxName)
	if err != nil {
		return 0, err
	}
	c.session.taken -= c.session.variableSize(name)
	delete(c.session.variables, name)
	return 0, nil
}

// maxRequest is the maximum length in bytes of a request without its body. See [abi].
const maxRequest = 256 << 10

func request(c *call) (int64, error) {
	s := c.session
	s.status, s.headers = 0, nil
	text, err := c.text(0, "http_request", "request", maxRequest)
	if err != nil {
		return 0, err
	}
	var asked struct {
		URL     string            `json:"url"`
		Method  string            `json:"method"`
		Headers map[string]string `json:"headers"`
	}
	if err := json.Unmarshal([]byte(text), &asked); err != nil {
		return 0, notRequest(err)
	}
	body, err := c.bytes(2)
	if err != nil {
		return 0, err
	}
	if int64(len(body)) > s.MaxBody {
		return 0, errorf("it sent a body of %d bytes, and may send and receive %d", len(body), s.MaxBody)
	}
	if s.Network == nil {
		return 0, errorf("it sent a request, and the tool has no network")
	}
	r := network.Request{Method: strings.ToUpper(asked.Method), URL: asked.URL}
	if r.Method == "" {
		r.Method = "GET"
	}
	for name, value := range asked.Headers {
		r.Headers = append(r.Headers, [2]string{name, value})
	}
	response, err := c.do(r, body)
	switch {
	case err != nil && c.ctx.Err() != nil:
		return 0, context.Cause(c.ctx)
	case err != nil:
		return 0, requestError(err)
	case response.Truncated:
		return 0, errorf("its request to %s got a response that is longer than it may receive (http_bytes)", response.URL)
	}
	s.status, s.headers = response.Status, response.Headers
	return c.hold(response.Body)
}

// do sends a request with a body in the kernel's memory. It does not copy the body of a refused request.
func (c *call) do(r network.Request, body []byte) (response network.Response, err error) {
	if len(body) > 0 {
		if err := c.session.Network.Check(c.ctx, r, len(body)); err != nil {
			return network.Response{}, err
		}
		if r.Body, err = c.session.Work.Copy(c.ctx, body); err != nil {
			return network.Response{}, err
		}
	}
	return c.session.Network.Do(c.ctx, r)
}

// notRequest returns the error for a text that is not the JSON of a request.
func notRequest(err error) error {
	mistyped, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case !ok:
		return errorf("it passed to http_request what is not JSON: %v", err)
	case mistyped.Field == "":
		return errorf("it passed to http_request what is not a request: its JSON is of type %s, not an object",
			mistyped.Value)
	}
	return errorf("it passed to http_request what is not a request: its member %s has, or holds, a value of type %s",
		mistyped.Field, mistyped.Value)
}

// requestError returns the error with which a request ends the plug-in, which has no way to read it.
func requestError(err error) error {
	failed, ok := errors.AsType[*hostfuncs.Error](err)
	if !ok {
		return err
	}
	return &Error{Message: "its HTTP request failed: " + cmp.Or(failed.Message, fmt.Sprint(failed.Kind)),
		Denial: failed.Denial}
}

func status(c *call) (int64, error) { return int64(c.session.status), nil }

// headers holds the headers of the last response as an object. Their names are in lower case, and a
// header that came more than once has its values joined.
func headers(c *call) (int64, error) {
	values := map[string][]string{}
	for _, header := range c.session.headers {
		name := strings.ToLower(header[0])
		values[name] = append(values[name], header[1])
	}
	joined := map[string]string{}
	for name, all := range values {
		joined[name] = strings.Join(all, ",")
	}
	text, err := json.Marshal(joined)
	if err != nil {
		return 0, err
	}
	return c.hold(text)
}

// logLevel is the lowest level that is logged, as plug-ins number them.
const logLevel = 2

var levels = []string{"trace", "debug", "info", "warn", "error"}

// log writes a message that is not below the level. The log may drop a part of it.
func log(c *call) (int64, error) {
	level := uint32(c.stack[0])
	if c.session.Log == nil || level < logLevel || level >= uint32(len(levels)) {
		return 0, nil
	}
	text, err := c.bytes(1)
	if err != nil {
		return 0, err
	}
	for _, part := range [][]byte{[]byte(levels[level] + ": "), text, []byte("\n")} {
		if _, err := c.session.Log.Write(part); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// left is the constant that the kernel exports: the address of the offsets and the lengths of the output
// and the error that the plug-in has set, in 32 bits each.
const left = "caisson:left"

// finish returns the function that takes a plug-in's output and error when it has returned.
func finish() hostfuncs.Function {
	return function{left, "i", "", "", takeLeft}.hostFunction()
}

func takeLeft(c *call) (int64, error) {
	words, err := c.at(c.stack[0], 4*4)
	if err != nil {
		return 0, err
	}
	word := func(n int) uint64 { return uint64(binary.LittleEndian.Uint32(words[4*n:])) }
	output, err := c.at(word(0), word(1))
	if err == nil && len(output) > 0 && c.session.Output != nil {
		_, err = c.session.Output.Write(output)
	}
	if err != nil {
		return 0, err
	}
	text, err := c.at(word(2), word(3))
	if err == nil && len(text) > 0 {
		c.session.Error = append([]byte(nil), text[:min(len(text), c.session.MaxError)]...)
	}
	return 0, err
}

func fault(c *call) (int64, error) {
	function, err := c.bytes(0)
	if err != nil {
		return 0, err
	}
	return 0, noBlock(c.stack[2], string(function))
}

func noBlock(offset uint64, function string) error {
	return &Error{Fault: true,
		Message: fmt.Sprintf("it passed the offset %d to %s, and has no such block of memory there", offset, function)}
}
