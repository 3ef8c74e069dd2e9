package manifests

import (
	"encoding/json"

	"github.com/caisson-run/caisson/tool"
)

// What the tests of this package's API also look at.

var ErrQuantity = errQuantity

func (p Profile) Extend(name string, limits Limits) Profile {
	return profileDraft{name: name, limits: limits}.extend(p)
}

// TextParameter returns the name of the parameter that takes the text of a tool whose type is [tool.CustomCall],
// and "" for other tools.
func (m *Manifest) TextParameter() string {
	if m.Type != tool.CustomCall {
		return ""
	}
	var shown struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(m.ModelParameters, &shown) != nil || len(shown.Properties) != 1 {
		return ""
	}
	for name := range shown.Properties {
		return name
	}
	return ""
}
