package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/tool"
)

// Bounds of what a client sends at a time.
const (
	maxBatch = 1024      // messages; as many as a request of the HTTP API has calls
	maxDepth = 1000      // of a message; the SDK reads no more
	maxID    = 1<<53 - 1 // the SDK rounds greater numbers
	// maxValues is the maximum number of values and names in the messages. It does not count those inside the
	// arguments of calls, which nothing here decodes. The SDK decodes everything else several times, at hundreds of
	// bytes a value.
	maxValues = 20_000
	// maxParams is the maximum length of the params of a message other than a call, in bytes. A session keeps those of
	// some messages, such as initialize, and so do streams that last.
	maxParams = 64 << 10
	// maxParamsValues is their maximum number of values and names: the SDK keeps some decoded, at 400 bytes each.
	maxParamsValues = 500
	// messageBytes is about what a message takes while it is handled, besides its text.
	messageBytes = 4 << 10
	// valueBytes is about what a value or a name of a message takes once the SDK has decoded it.
	valueBytes = 256
	// maxIDBytes is the maximum length of an id or a progress token, in bytes of JSON: answers and progress repeat them.
	maxIDBytes = 1 << 10
)

// method is a method or a notification that the server knows.
type method struct {
	params   func() any // a value that decodes them
	required bool       // whether they must be there
	early    bool       // whether it may come before a session has begun
}

// methods are those of the capabilities that the server declares. The SDK answers others as well, and words its errors
// for programmers, so that it gets only valid messages.
var methods = map[string]method{
	"initialize":               {paramsOf[sdk.InitializeParams], true, true},
	"ping":                     {paramsOf[sdk.PingParams], false, true},
	"server/discover":          {paramsOf[sdk.DiscoverParams], false, true},
	"tools/list":               {paramsOf[sdk.ListToolsParams], false, false},
	callMethod:                 {paramsOf[sdk.CallToolParamsRaw], true, false},
	"resources/list":           {paramsOf[sdk.ListResourcesParams], false, false},
	"resources/templates/list": {paramsOf[sdk.ListResourceTemplatesParams], false, false},
	"resources/read":           {paramsOf[sdk.ReadResourceParams], true, false},
	//lint:ignore SA1019 the latest revision keeps log messages for a year
	"logging/setLevel":          {paramsOf[sdk.SetLoggingLevelParams], true, false},
	listenMethod:                {paramsOf[sdk.SubscriptionsListenParams], true, false},
	"notifications/cancelled":   {paramsOf[sdk.CancelledParams], false, true},
	"notifications/initialized": {paramsOf[sdk.InitializedParams], false, true},
	//lint:ignore SA1019 the latest revision keeps lists of roots for a year
	"notifications/roots/list_changed": {paramsOf[sdk.RootsListChangedParams], false, true},
	"notifications/progress":           {paramsOf[sdk.ProgressNotificationParams], true, true},
}

// stateless is the first revision of the protocol without sessions.
const stateless = "2026-07-28"

const (
	callMethod = "tools/call"
	// listenMethod lasts until its client ends it.
	listenMethod = "subscriptions/listen"
)

func paramsOf[P any]() any { return new(P) }

// rejection is the answer to messages that the SDK does not get.
type rejection struct {
	id     string // of the request, as JSON; empty if it has none, or none that can be used
	silent bool   // it is a notification, which is not answered over lines
	full   bool   // there is no room for the messages now
	err    *jsonrpc.Error
}

func reject(code int64, format string, arguments ...any) *rejection {
	return &rejection{err: &jsonrpc.Error{Code: code, Message: fmt.Sprintf(format, arguments...)}}
}

// message returns the answer as a message of the protocol.
func (r *rejection) message() ([]byte, error) {
	id := json.RawMessage("null")
	if r.id != "" {
		id = json.RawMessage(r.id)
	}
	return json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc.Error  `json:"error"`
	}{"2.0", id, r.err})
}

// check returns why a message or a batch of them is not passed on, or nil. Before a session has begun, few methods are.
// Subscriptions that last are for clients that may listen. What the messages will take besides their text is counted
// with hold, before they are looked at.
func check(text string, begun, listens bool, hold func(bytes int) error) *rejection {
	doc, rejected := parse(text)
	if rejected != nil {
		return rejected
	}
	c := checker{begun: begun, listens: listens, hold: hold, values: maxValues}
	if doc.Root().Kind() != jsontext.Array {
		if hold(messageBytes) != nil {
			return noRoom()
		}
		_, rejected := c.message(doc)
		return rejected
	}
	n := doc.Root().Len()
	if n == 0 || n > maxBatch {
		return reject(jsonrpc.CodeInvalidRequest, "a batch has from 1 to %d messages, and this one %d", maxBatch, n)
	}
	if hold(n*messageBytes) != nil {
		return noRoom()
	}
	ids := map[any]bool{} // as values: 1.0 is 1
	for i, message := range doc.Root().Elements() {
		id, rejected := c.element(message.Text())
		if rejected != nil && rejected.full {
			return rejected
		}
		var value any
		_ = json.Unmarshal([]byte(id), &value) // it is JSON, or empty
		if rejected == nil && id != "" && ids[value] {
			rejected = reject(jsonrpc.CodeInvalidRequest, "the id is that of another message")
		}
		if rejected != nil {
			return reject(rejected.err.Code, "message %d of the batch: %s", i+1, rejected.err.Message)
		}
		ids[value] = true
	}
	return nil
}

// checker checks the messages of one batch, or a single message.
type checker struct {
	begun   bool // a session has begun
	listens bool // listenMethod is passed on
	hold    func(bytes int) error
	values  int // how many more values and names the messages may have
}

// element checks one message of a batch. It returns the id of a request, as JSON.
func (c *checker) element(text string) (id string, rejected *rejection) {
	doc, rejected := parse(text)
	if rejected != nil {
		return "", rejected
	}
	return c.message(doc)
}

// noRoom refuses messages while the tenant's open requests take all that they may.
func noRoom() *rejection {
	rejected := reject(jsonrpc.CodeInternalError, "the bodies of open requests have too many bytes; try again later")
	rejected.full = true
	return rejected
}

// beyond returns about how many bytes so many values and names of a message take, beyond messageBytes.
func beyond(values int) int { return max(0, values*valueBytes-messageBytes) }

// held returns about how many bytes a request with such params takes. They have been checked.
func held(params string) int {
	c := checker{values: maxValues}
	_ = c.count(params) // they have no more values
	return len(params) + messageBytes + beyond(maxValues-c.values)
}

// count counts the values in the members of an object, except in the arguments of a call, and rejects too many.
func (c *checker) count(object string) *rejection {
	shallow, rejected := parse(object)
	if rejected != nil || shallow.Root().Kind() != jsontext.Object {
		return rejected
	}
	for name, value := range shallow.Root().Members() {
		c.values -= 2
		if name.String() != "arguments" && c.values > 0 {
			doc, err := jsontext.Parse(value.Text(), jsontext.Limits{Depth: maxDepth, Values: c.values, Repeated: true})
			if err != nil { // the text is JSON, and not too deep
				c.values = 0
			} else {
				c.values -= doc.Extent().Values
			}
		}
		if c.values <= 0 {
			return reject(jsonrpc.CodeInvalidRequest, "the messages have more than %d values outside the arguments of calls",
				maxValues)
		}
	}
	return nil
}

// parse reads the outermost value of a text.
func parse(text string) (*jsontext.Document, *rejection) {
	doc, err := jsontext.Parse(text, jsontext.Limits{Depth: maxDepth, Repeated: true, Shallow: true})
	switch {
	case errors.Is(err, jsontext.ErrSyntax), errors.Is(err, jsontext.ErrBehind):
		return nil, reject(jsonrpc.CodeParseError, "the message is not JSON")
	case err != nil:
		return nil, reject(jsonrpc.CodeInvalidRequest, "the message cannot be read: %s", err)
	}
	return doc, nil
}

// message checks one message. It returns the id of a request, as JSON.
func (c *checker) message(doc *jsontext.Document) (id string, rejected *rejection) {
	if doc.Root().Kind() != jsontext.Object {
		return "", reject(jsonrpc.CodeInvalidRequest, "a message is an object")
	}
	members := map[string]jsontext.Value{}
	for name, value := range doc.Root().Members() {
		if _, ok := members[name.String()]; ok {
			repeated := &jsontext.Error{Err: jsontext.ErrRepeated, Path: name.Path()}
			return "", reject(jsonrpc.CodeInvalidRequest, "%s", tool.Shown(repeated.Error(), 256))
		}
		members[name.String()] = value
	}
	if v, ok := members["id"]; ok {
		if !isID(v) {
			return "",
				reject(jsonrpc.CodeInvalidRequest,
					"the id of a request is a string of at most %d bytes, or an integer from -%d to %d", maxIDBytes, maxID, maxID)
		}
		id = v.Text()
	}
	before := c.values
	for _, name := range []string{"params", "result", "error"} {
		if kindOf(members[name]) == jsontext.Object {
			if rejected = c.count(members[name].Text()); rejected != nil {
				rejected.id = id
				return id, rejected
			}
		}
	}
	if c.hold(beyond(before-c.values)) != nil {
		return id, noRoom()
	}
	if _, err := jsonrpc.DecodeMessage([]byte(doc.Text())); err != nil {
		return "", reject(jsonrpc.CodeInvalidRequest, "the message is none of JSON-RPC 2.0")
	}
	if _, ok := members["method"]; !ok {
		return "", nil // an answer to the server
	}
	if members["method"].String() == listenMethod && !c.listens {
		const format = "%s is of the revision %s, which has no sessions"
		rejected = reject(jsonrpc.CodeMethodNotFound, format, listenMethod, stateless)
		rejected.id = id
		return id, rejected
	}
	if rejected = checkRequest(members["method"].String(), id, members["params"], c.begun); rejected != nil {
		rejected.id, rejected.silent = id, id == ""
	}
	return id, rejected
}

const noSession = "there is no session yet; begin one with initialize"

// absent is the kind of a member that an object does not have.
const absent jsontext.Kind = 0

// hasAtMost reports whether a value has at most so many values and names in it.
func hasAtMost(v jsontext.Value, limit int) bool {
	_, err := jsontext.Parse(v.Text(), jsontext.Limits{Depth: maxDepth, Values: limit, Repeated: true})
	return err == nil
}

// checkRequest is check for a request or a notification.
func checkRequest(name, id string, params jsontext.Value, begun bool) *rejection {
	m, ok := methods[name]
	isNotification := strings.HasPrefix(name, "notifications/")
	switch kind := kindOf(params); {
	case !ok:
		return reject(jsonrpc.CodeMethodNotFound, "method not found: %q", tool.Shown(name, 64))
	case isNotification != (id == ""):
		return reject(jsonrpc.CodeInvalidRequest, "a request has an id, and a notification has none")
	case kind == absent || kind == jsontext.Null:
		if m.required {
			return reject(jsonrpc.CodeInvalidParams, "%s needs params", name)
		}
	case kind != jsontext.Object:
		return reject(jsonrpc.CodeInvalidParams, "params must be an object")
	case name != callMethod && len(params.Text()) > maxParams:
		return reject(jsonrpc.CodeInvalidParams, "the params of %s have %d bytes, over the limit of %d", name,
			len(params.Text()), maxParams)
	case name != callMethod && !hasAtMost(params, maxParamsValues):
		return reject(jsonrpc.CodeInvalidParams, "the params of %s have more than %d values", name, maxParamsValues)
	default:
		if wrong := checkParams(m, params.Text()); wrong != "" {
			return reject(jsonrpc.CodeInvalidParams, "%s", wrong)
		}
	}
	if !begun && !m.early && !saysVersion(params) {
		return reject(jsonrpc.CodeInvalidRequest, noSession)
	}
	return nil
}

// kindOf returns the kind of a member, which may be absent.
func kindOf(v jsontext.Value) jsontext.Kind {
	if v == (jsontext.Value{}) {
		return absent
	}
	return v.Kind()
}

// checkParams returns the mistake in params, or "".
func checkParams(m method, text string) string {
	err := json.Unmarshal([]byte(text), m.params())
	if misfit, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && misfit.Field != "" {
		return fmt.Sprintf("params.%s cannot be this %s", tool.Shown(misfit.Field, 64), misfit.Value)
	}
	if err != nil {
		return "params have a member of the wrong type"
	}
	doc, rejected := parse(text)
	if rejected != nil {
		return rejected.err.Message
	}
	extra := doc.Root().Get("_meta")
	if kindOf(extra) != jsontext.Object {
		return ""
	}
	if doc, rejected = parse(extra.Text()); rejected != nil {
		return rejected.err.Message
	}
	if token := doc.Root().Get("progressToken"); kindOf(token) != absent && !isID(token) {
		return fmt.Sprintf("params._meta.progressToken is a string of at most %d bytes, or an integer from -%d to %d",
			maxIDBytes, maxID, maxID)
	}
	return ""
}

// isID reports whether a value identifies a request or its progress: a short string, or an integer that no double
// rounds.
func isID(v jsontext.Value) bool {
	switch {
	case len(v.Text()) > maxIDBytes:
		return false
	case v.Kind() != jsontext.Number:
		return v.Kind() == jsontext.String
	}
	number, err := strconv.ParseFloat(v.Text(), 64)
	return err == nil && number == math.Trunc(number) && math.Abs(number) <= maxID
}

// saysVersion reports whether params say the revision of the protocol, so that the request needs no session.
func saysVersion(params jsontext.Value) bool {
	return kindOf(params) == jsontext.Object && strings.Contains(params.Text(), sdk.MetaKeyProtocolVersion)
}

// words are the messages of errors that the SDK words for programmers.
var words = map[int64]string{
	jsonrpc.CodeParseError: "the message is not JSON", jsonrpc.CodeInvalidRequest: "the request is not valid",
	jsonrpc.CodeMethodNotFound: "method not found",
	jsonrpc.CodeInvalidParams:  "the params are not valid",
}

// inWords returns an error as a client sees it, and whether it hides another cause.
func inWords(err error) (shown *jsonrpc.Error, hides bool) {
	if direct, ok := err.(*jsonrpc.Error); ok { //nolint:errorlint // one that wraps others has their texts
		return direct, false
	}
	if wrapped, ok := errors.AsType[*jsonrpc.Error](err); ok {
		if text, ok := words[wrapped.Code]; ok {
			return &jsonrpc.Error{Code: wrapped.Code, Message: text}, false
		}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the request cannot be handled"}, true
}
