package mcp

import (
	"cmp"

	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// annotations are what a server says of a tool. Of what it does not say the worst is assumed: that
// the tool changes things, destroys some, and does so again each time.
type annotations struct {
	Title       string `json:"title,omitempty"`
	ReadOnly    bool   `json:"readOnlyHint,omitempty"`
	Destructive *bool  `json:"destructiveHint,omitempty"`
	Idempotent  bool   `json:"idempotentHint,omitempty"`
}

// annotated returns the annotations for hints, nil where these say nothing. Of a tool that only
// reads it goes without saying that it destroys nothing.
func annotated(hints tool.Hints) *annotations {
	if hints == (tool.Hints{}) {
		return nil
	}
	written := &annotations{ReadOnly: hints.ReadOnly, Idempotent: hints.Idempotent}
	if !hints.ReadOnly || hints.Destructive {
		written.Destructive = &hints.Destructive
	}
	return written
}

// hints is the reverse of annotated.
func (a *annotations) hints() tool.Hints {
	if a == nil {
		return tool.Hints{}
	}
	hints := tool.Hints{ReadOnly: a.ReadOnly, Idempotent: a.Idempotent, Destructive: !a.ReadOnly}
	if a.Destructive != nil {
		hints.Destructive = *a.Destructive
	}
	return hints
}

// definition returns what a server says of a tool.
func (t *wireTool) definition() tool.Definition {
	read := tool.Definition{
		Name: t.Name, Description: t.Description, Parameters: t.InputSchema, Label: t.Title, Hints: t.Annotations.hints(),
	}
	if t.Annotations != nil {
		read.Label = cmp.Or(read.Label, t.Annotations.Title)
	}
	if !wire.Absent(t.OutputSchema) {
		read.Result = t.OutputSchema
	}
	return read
}
