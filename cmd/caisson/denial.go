package main

import (
	"fmt"

	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// availability is the permission in the receipt of a tool that lacks what it requires.
const availability = "availability"

// callPermission is the permission to call another tool.
const callPermission = "tools"

// approvalPermission is the permission in the receipt of a call that was not approved.
const approvalPermission = "approval"

// withheld returns what was granted to a tool that does not get it all the same, such as a
// secret whose variable is not set, and how to see the rest.
func (h *host) withheld(name string) []string {
	var hints []string
	if entry, ok := h.registry.Get(name); ok {
		if t, ok := entry.Tool.(*runtime.Tool); ok {
			for _, d := range t.Decisions() {
				if d.Granted != "" && d.Effective == "" {
					hints = append(hints, fmt.Sprintf("%s: %s, but %s", d.Permission, d.Granted, d.Reason))
				}
			}
		}
	}
	hints = append(hints, h.unappliedHints()...)
	return append(hints, fmt.Sprintf("run %q to see what it asks for and what would allow it", h.inspectCommand(name)))
}

// denialHints says what would allow the last of the denials, which is the one that the
// error names.
func (h *host) denialHints(name string, denials []tool.Denial) []string {
	if len(denials) == 0 {
		return nil
	}
	last := denials[len(denials)-1]
	switch last.Permission {
	case availability:
		return append(h.withheld(name), h.operator.unusedFile()...)
	case approvalPermission:
		return h.approvalHints(name)
	}
	remedy, note := h.operator.contextNote(last)
	hints := append(remedy.hints("the manifest of "+name, h.operator.file()), note...)
	if others := len(denials) - 1; others > 0 {
		hints = append(hints, count(others, "more request")+" of the tool's were refused; --json shows all")
	}
	if len(hints) > 0 {
		hints = append(hints, h.unappliedHints()...)
	}
	return append(hints, h.operator.unusedFile()...)
}

// approvalHints says what would let calls of a tool run that were not approved.
func (h *host) approvalHints(name string) []string {
	entry, ok := h.registry.Get(name)
	if !ok || h.operator.asks(entry.Manifest) {
		return nil
	}
	return []string{
		"run all of its calls without approval with --approve-tool " + entry.Name,
		fmt.Sprintf("or in %s: approve: [{tools: [%s]}]", h.operator.file(), entry.Name),
	}
}

// inspectCommand returns the command that looks at a tool as this one did.
func (h *host) inspectCommand(name string) string {
	command := "caisson inspect " + name
	for _, source := range h.options.tools {
		command += " --tools " + source
	}
	if h.options.config != "" {
		command += " --config " + h.options.config
	}
	return command
}
