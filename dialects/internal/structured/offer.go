package structured

import (
	"encoding/json"
	"slices"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/lint"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// Tool is a tool as it is offered.
type Tool struct {
	Type        string // as in [tool.Definition], never empty
	Name        string
	Description string
	Parameters  json.RawMessage // of a function
	Strict      bool            // the model is held to Parameters
	Format      Format          // of a custom tool
}

// Format bounds the text of a custom tool. Written is the whole of it; nil for any text.
type Format struct {
	Written    json.RawMessage `json:"-"`
	Type       string          `json:"type"`
	Syntax     string          `json:"syntax"`
	Definition string          `json:"definition"`
}

// Offer returns how tools are offered, and the findings. Tools of the given types are offered as such,
// all others as functions.
func Offer(reader wire.Reader, definitions []tool.Definition, strict bool, types ...string) ([]Tool, []dialects.Finding, error) {
	tools := make([]Tool, len(definitions))
	findings, err := lint.Tools(reader, definitions, names(), func(i int, d *tool.Definition) (found []dialects.Finding, err error) {
		offered := &tools[i]
		*offered = Tool{Type: tool.FunctionCall, Name: d.Name, Description: d.Description}
		switch isKnown := slices.Contains(types, d.Type); {
		case isKnown && d.Type == tool.CustomCall:
			offered.Type = d.Type
			return offered.custom(d.Format)
		case isKnown && d.Name == tool.LocalShellCall:
			offered.Type = d.Type
			return localShell(d), nil
		case isKnown:
			found = append(found, dialects.Finding{
				Keyword: "name", Severity: dialects.Weakened, Adapted: true,
				Message: "the tool is not offered as the local shell, whose calls come back under the name local_shell",
				Fix:     "it is offered as a function; name it local_shell",
			})
		}
		var more []dialects.Finding
		offered.Parameters, more, offered.Strict, err = lint.Parameters(d.Parameters, strict, strictRules(), looseRules())
		return append(found, more...), err
	})
	return tools, findings, err
}

// custom takes the format of a custom tool, and reports what is wrong with it.
func (t *Tool) custom(written json.RawMessage) ([]dialects.Finding, error) {
	f := &t.Format
	if wire.Absent(written) {
		return nil, nil
	}
	if err := (wire.Reader{}).Into("format", written, f); err != nil {
		return nil, err
	}
	f.Written = written
	if f.Type == "text" || f.Type == "grammar" && f.Definition != "" && slices.Contains([]string{"lark", "regex"}, f.Syntax) {
		return nil, nil
	}
	return []dialects.Finding{{
		Keyword: "format", Severity: dialects.Refused,
		Message: "the request is refused: a custom tool takes text, or text by a grammar",
		Fix:     `write {"type":"text"}, or {"type":"grammar","syntax":"lark","definition":"…"} with the syntax lark or regex`,
	}}, nil
}

// localShell reports what is lost of a tool that is offered as the local shell, which has no members.
func localShell(d *tool.Definition) []dialects.Finding {
	if d.Description == "" {
		return nil
	}
	return []dialects.Finding{{
		Keyword: "description", Severity: dialects.Weakened,
		Message: "the description is left out: models know the local shell without",
		Fix:     "say in the instructions what the model must know of this shell",
	}}
}
