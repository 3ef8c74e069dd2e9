package wire

import (
	"encoding/json"

	"github.com/caisson-run/caisson/dialects/internal/exact"
	"github.com/caisson-run/caisson/tool"
)

// maxOrigin limits the bytes of a call's origin, which every copy of the call has.
const maxOrigin = 4096

// Member is a member of an origin, or the zero value if the value is absent.
func Member(name string, value json.RawMessage) exact.Member {
	if Absent(value) {
		return exact.Member{}
	}
	return exact.Member{Name: name, Value: exact.Literal(string(Compact(value)))}
}

// Origin returns the origin of the call that r reads: the members that the provider wants back. It is empty
// if there are none.
func Origin(r Reader, members ...exact.Member) (string, error) {
	var given []exact.Member
	for _, m := range members {
		if m.Value != nil {
			given = append(given, m)
		}
	}
	if len(given) == 0 {
		return "", nil
	}
	text := exact.Object(exact.Member{Name: r.Dialect, Value: exact.Object(given...)}).Append(nil)
	if len(text) > maxOrigin {
		return "", r.Fail(given[0].Name, "has, with what else has to be sent back with the call, more than %d bytes", maxOrigin)
	}
	return string(text), nil
}

// FromOrigin decodes the members of a call's origin that are for a dialect. It leaves the value as it is for
// calls of other providers, and for origins that cannot be read.
func FromOrigin(dialect string, call *tool.Call, value any) {
	var origins map[string]json.RawMessage
	if call.Origin != "" && json.Unmarshal([]byte(call.Origin), &origins) == nil && len(origins[dialect]) > 0 {
		_ = exact.Unmarshal(origins[dialect], value)
	}
}
