package executor

import (
	"encoding/json"

	"github.com/caisson-run/caisson/tool"
)

// wireDenial is a [tool.Denial] as a state has it.
type wireDenial struct {
	Permission string    `json:"permission"`
	Value      string    `json:"value"`
	Rule       string    `json:"rule"`
	Allow      wireAllow `json:"allow"`
}

// wireDecision is a [tool.Decision] as a state has it. What is stored is compared with what a tool
// may do when its call is resumed.
type wireDecision struct {
	Permission string    `json:"permission"`
	Requested  string    `json:"requested"`
	Granted    string    `json:"granted"`
	Effective  string    `json:"effective"`
	Reason     string    `json:"reason"`
	Allow      wireAllow `json:"allow"`
}

// wireAllow is a [tool.Allow], the rules of which stay as they were.
type wireAllow struct {
	Manifest jsonText `json:"manifest,omitempty"`
	Grant    jsonText `json:"grant,omitempty"`
}

func encodeDenial(d tool.Denial) wireDenial {
	return wireDenial{d.Permission, d.Value, d.Rule, encodeAllow(d.Allow)}
}

func (w wireDenial) decode() tool.Denial {
	return tool.Denial{Permission: w.Permission, Value: w.Value, Rule: w.Rule, Allow: w.Allow.decode()}
}

func encodeDecision(d tool.Decision) wireDecision {
	return wireDecision{d.Permission, d.Requested, d.Granted, d.Effective, d.Reason, encodeAllow(d.Allow)}
}

func (w wireDecision) decode() tool.Decision {
	return tool.Decision{
		Permission: w.Permission, Requested: w.Requested, Granted: w.Granted, Effective: w.Effective, Reason: w.Reason, Allow: w.Allow.decode(),
	}
}

func encodeAllow(a tool.Allow) wireAllow { return wireAllow{jsonText(a.Manifest), jsonText(a.Grant)} }

func (w wireAllow) decode() tool.Allow {
	return tool.Allow{Manifest: json.RawMessage(w.Manifest), Grant: json.RawMessage(w.Grant)}
}

// each returns nil for nil.
func each[A, B any](all []A, change func(A) B) []B {
	if all == nil {
		return nil
	}
	changed := make([]B, len(all))
	for i := range all {
		changed[i] = change(all[i])
	}
	return changed
}
