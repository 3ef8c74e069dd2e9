package structured

import (
	"encoding/json"
	"slices"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// custom offers a tool as a custom one, whose text has the format that is written.
func custom(offered Tool, written json.RawMessage) (Tool, []dialects.Finding, error) {
	if wire.Absent(written) {
		return offered, nil, nil
	}
	if !json.Valid(written) {
		return Tool{}, nil, (wire.Reader{}).Fail("format", "is not JSON")
	}
	offered.Format = written
	return offered, format(written), nil
}

// format says what is wrong with the format of a custom tool's text.
func format(written json.RawMessage) []dialects.Finding {
	var f struct {
		Type       string `json:"type"`
		Syntax     string `json:"syntax"`
		Definition string `json:"definition"`
	}
	err := json.Unmarshal(written, &f)
	switch {
	case err == nil && f.Type == "text":
		return nil
	case err == nil && f.Type == "grammar" && f.Definition != "" && slices.Contains([]string{"lark", "regex"}, f.Syntax):
		return nil
	}
	return []dialects.Finding{{
		Keyword: "format", Severity: dialects.Refused,
		Message: "the request is refused: a custom tool takes text, or text by a grammar",
		Fix:     `write {"type":"text"}, or {"type":"grammar","syntax":"lark","definition":"…"} with the syntax lark or regex`,
	}}
}

// localShell says what is lost of a tool that is offered as the shell, of which the API is told
// nothing but that it is there.
func localShell(d *tool.Definition) []dialects.Finding {
	var found []dialects.Finding
	if d.Name != tool.LocalShellCall {
		found = append(found, renamed(false))
	}
	if d.Description != "" {
		found = append(found, dialects.Finding{
			Keyword: "description", Severity: dialects.Weakened,
			Message: "the description is left out: models know the local shell without",
			Fix:     "say in the instructions what the model must know of this shell",
		})
	}
	return found
}

// renamed is the finding for a local shell that calls would not find.
func renamed(adapted bool) dialects.Finding {
	return dialects.Finding{
		Keyword: "name", Severity: dialects.Weakened, Adapted: adapted,
		Message: "the name is left out: calls come back under the name local_shell, which is not this tool's",
		Fix:     "name the tool local_shell; Adapt offers it as a function instead",
	}
}
