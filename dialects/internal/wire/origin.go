package wire

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/tool"
)

// maxOrigin limits the bytes of a call's origin, which every copy of the call has.
const maxOrigin = 4096

// OriginMember is a member of an origin. Its JSON is empty if it is absent.
type OriginMember struct{ name, json string }

func Member(name string, value json.RawMessage) OriginMember {
	if Absent(value) {
		return OriginMember{}
	}
	return OriginMember{name, string(Compact(value))}
}

// Origin returns the origin of the call that r reads: the members that the provider wants back. It is empty
// if there are none.
func Origin(r Reader, members ...OriginMember) (string, error) {
	var given []string
	first := ""
	for _, m := range members {
		if m.json != "" {
			given, first = append(given, jsontext.Quote(m.name)+":"+m.json), cmp.Or(first, m.name)
		}
	}
	if len(given) == 0 {
		return "", nil
	}
	text := "{" + jsontext.Quote(r.Dialect) + ":{" + strings.Join(given, ",") + "}}"
	if len(text) > maxOrigin {
		return "", r.Fail(first, "has, with what else has to be sent back with the call, more than %d bytes", maxOrigin)
	}
	return text, nil
}

// FromOrigin decodes the members of a call's origin that are for a dialect. It leaves the value unchanged for
// calls of other providers, and for origins that cannot be read.
func FromOrigin(dialect string, call *tool.Call, value any) {
	var origins map[string]json.RawMessage
	if call.Origin != "" && json.Unmarshal([]byte(call.Origin), &origins) == nil && len(origins[dialect]) > 0 {
		_ = decode.Unmarshal(origins[dialect], value)
	}
}
