package main

import (
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// remedy says what would allow a refused request. The manifest is named as a sentence
// begins; the policy is the operator's file.
func remedy(allow tool.Allow, manifest, policy string) []string {
	var hints []string
	if allow.Manifest != "" {
		hints = append(hints, manifest+" must ask for it: "+allow.Manifest)
	}
	start := "allow it in "
	if allow.Grant != "" {
		hints = append(hints, "allow it with "+allow.Grant)
		start = "or in "
	}
	switch {
	case strings.HasPrefix(allow.Config, "- "):
		hints = append(hints, start+policy+", under grants: "+allow.Config)
	case allow.Config != "":
		hints = append(hints, start+policy+": "+allow.Config)
	}
	return hints
}

// denialHints says what would allow the last of the denials, which is the one that the
// error names.
func (h *host) denialHints(name string, denials []tool.Denial) []string {
	if len(denials) == 0 {
		return nil
	}
	last := denials[len(denials)-1]
	allow, note := h.operator.contextNote(last)
	hints := append(remedy(allow, "the manifest of "+name, h.operator.file()), note...)
	if others := len(denials) - 1; others > 0 {
		hints = append(hints, count(others, "more request")+" of the tool's were refused; --json shows all")
	}
	return append(hints, h.operator.unusedFile()...)
}
