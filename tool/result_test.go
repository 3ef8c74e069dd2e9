package tool

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/internal/noerr"
)

// TestRecordOnTheWire pins the record's JSON, which is stored and streamed.
func TestRecordOnTheWire(t *testing.T) {
	record := Record{
		Call:          Call{ID: "call_x", Type: "function", Function: Function{Name: "calculator", Arguments: `{"expression":"2+2"}`}},
		CallID:        "0199",
		Result:        Result{Success: true, Output: "4", Data: json.RawMessage(`{"value":4}`)},
		ExecutionTime: 400 * time.Microsecond,
		Usage:         Usage{MemoryBytes: 1114112, Wall: 380 * time.Microsecond},
	}
	wire := noerr.Get(json.Marshal(record))(t)
	assert.Equal(t, `{"id":"call_x","call_id":"0199","type":"function","function":{"name":"calculator","arguments":"{\"expression\":\"2+2\"}"},`+
		`"result":"{\"success\":true,\"output\":\"4\",\"data\":{\"value\":4}}","success":true,"skipped":false,"execution_time":0.0004,`+
		`"cached":false,"repairs":[],"denials":[],"log":"","usage":{"fuel":null,"memory_bytes":1114112,"wall_ns":380000,"host_calls":0},"host_calls":[]}`, string(wire))

	record.Usage.Queue, record.Usage.Compile = 2*time.Millisecond, 3*time.Millisecond
	wire = noerr.Get(json.Marshal(record))(t)
	assert.Contains(t, string(wire), `"wall_ns":380000,"host_calls":0,"queue_ns":2000000,"compile_ns":3000000},`)

	back := noerr.Decode[Record](t, wire)
	record.Repairs, record.Denials, record.HostCalls = []Repair{}, []Denial{}, []HostCall{}
	assert.Equal(t, record, back)
	assert.Error(t, json.Unmarshal([]byte(`{"result":"{"}`), &back))
}

func TestFailedRecordCarriesErrorAndKind(t *testing.T) {
	wire := noerr.Get(json.Marshal(Record{
		Result:  Result{Error: "no", Kind: Denied},
		Denials: []Denial{{Permission: "files", Value: "/etc/passwd", Rule: "no grant", Allow: Allow{Grant: json.RawMessage(`{"tools":["a"],"env":{"LANG":null}}`)}}},
	}))(t)
	assert.Contains(t, string(wire), `"result":"{\"success\":false,\"error\":\"no\",\"kind\":\"denied\"}","success":false`)
	assert.Contains(t, string(wire), `"denials":[{"permission":"files","value":"/etc/passwd","rule":"no grant","allow":{"manifest":null,"grant":{"tools":["a"],"env":{"LANG":null}}}}]`)
	back := noerr.Decode[Record](t, wire)
	assert.Equal(t, Allow{Grant: json.RawMessage(`{"tools":["a"],"env":{"LANG":null}}`)}, back.Denials[0].Allow)
	assert.Error(t, json.Unmarshal([]byte(`"no"`), &back.Denials[0].Allow))
}

func TestErrorsAreTheirKind(t *testing.T) {
	cause := errors.New("cause")
	for _, kind := range Kinds() {
		err := error(&Error{Op: "invoke", Tool: "t", Kind: kind, Message: "m", Err: cause})
		assert.ErrorIs(t, err, kind)
		assert.ErrorIs(t, err, cause)
		assert.Equal(t, kind == Deadline, errors.Is(err, context.DeadlineExceeded), kind)
		assert.Equal(t, kind == Cancelled, errors.Is(err, context.Canceled), kind)
		assert.Equal(t, "t: "+string(kind)+": m", err.Error())
	}
	assert.NotErrorIs(t, &Error{Kind: Denied}, Deadline)
	assert.Equal(t, "internal: cause", (&Error{Kind: Internal, Err: cause}).Error())
}
