package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/tool"
)

// maxNamed is how many items of a response a hint names.
const maxNamed = 8

// remark says what in a response has to be done elsewhere: the model may have to continue, and items of the
// provider's own tools are neither run nor answered here.
func (o *batchOptions) remark(dialect dialects.Dialect, response *tool.ChatResponse) {
	if response.FinishReason.WasCut() {
		text := fmt.Sprintf("the response was cut off (%s), so text or calls may be missing", tool.Shown(string(response.FinishReason), 64))
		if slices.ContainsFunc(response.ToolCalls, func(call tool.Call) bool { return call.Incomplete }) {
			text += "; a call in which it was cut off is not run, and its result says so"
		}
		o.hint(text)
	}
	for _, remark := range response.Remarks {
		o.hint(remark)
	}
	var waiting, others []string
	for _, item := range response.ProviderItems {
		name := strings.TrimSpace(cmp.Or(tool.Shown(item.Type, 64), "an item without a type") + " " + tool.Shown(item.ID, 64))
		if item.Waiting {
			waiting = append(waiting, name)
		} else {
			others = append(others, name)
		}
	}
	waits, owner := "the provider waits", "of the provider's own tools"
	if dialect.Name() == dialects.MCP {
		waits, owner = "the client waits", "since only tools/call runs a tool"
	}
	if len(waiting) > 0 {
		o.hint(waits + " for your own answer to " + namesOf(waiting) + ": caisson does not run it; send the answer together with these results")
	}
	if len(others) > 0 {
		o.hint("not used: " + namesOf(others) + ", " + owner)
	}
}

// namesOf joins names, and counts those that are too many to be named.
func namesOf(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}
