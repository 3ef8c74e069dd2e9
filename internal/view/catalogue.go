package view

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// Catalogue is the output of "caisson list".
type Catalogue struct {
	registry.Catalogue
	// Problems say which manifests are broken, and which sources are not loaded.
	Problems []manifests.Problem `json:"problems"`
}

// Table returns the catalogue as text for people, in lines that are not wider than width if possible.
func (c Catalogue) Table(width int) string {
	rows := [][]string{{"NAME", "WHAT IT IS", "SOURCE", "NOTES"}}
	for _, t := range c.Tools {
		rows = append(rows, []string{t.Name, cmp.Or(t.Label, terminal.Clip(t.Summary, 48)), t.Source,
			strings.Join(notesOn(t), "; ")})
	}
	text := terminal.Fitted(rows, width)
	if len(c.Duplicates) > 0 {
		text += "\n"
	}
	for _, d := range c.Duplicates {
		text += terminal.EscapeLine(KeptOut(d)) + "\n"
	}
	return text
}

// notesOn returns a table's notes on a tool, which follow its name.
func notesOn(t registry.Listing) (notes []string) {
	if !t.Allowed {
		notes = append(notes, "not for this agent")
	}
	if t.Unavailable != "" {
		notes = append(notes, "unavailable: "+t.Unavailable)
	}
	old := manifests.Deprecated{} // without the message, which is long
	if t.Deprecated != nil {
		old = manifests.Deprecated{Since: t.Deprecated.Since, Use: t.Deprecated.Use, Alias: t.Deprecated.Alias}
		if old.Use == t.Name {
			old.Use = ""
		}
		if old.Alias == "" {
			notes = append(notes, Deprecation(old))
		}
	}
	for _, note := range []struct {
		is   bool
		note string
	}{
		{t.ReadOnly, "read-only"}, {t.Execution == manifests.ExecutionClient, "run by the client"},
		{t.Asks != "", "needs approval"},
		{t.Type != tool.FunctionCall, string(t.Type)}, {t.Final, "final"}, {t.Hidden, "hidden"},
	} {
		if note.is {
			notes = append(notes, note.note)
		}
	}
	var aliases []string
	for _, alias := range t.Aliases {
		if alias == old.Alias {
			alias += " (" + Deprecation(old) + ")"
		}
		aliases = append(aliases, alias)
	}
	if len(aliases) > 0 {
		notes = append(notes, "also "+strings.Join(aliases, ", "))
	}
	if len(t.Retired) > 0 {
		notes = append(notes, "replaces "+strings.Join(t.Retired, ", "))
	}
	return notes
}

// KeptOut says which name was rejected, and why.
func KeptOut(d *registry.DuplicateError) string {
	what, why := d.Name, "the name is taken"
	switch {
	case d.Dropped.Alias:
		what = "alias " + what
	case d.Dropped.Retired:
		what = "retired name " + what
	}
	if d.Reason == registry.LookAlike {
		why = "it looks like " + d.Kept.Name
	}
	return fmt.Sprintf("kept out: %s from %s (%s); kept: %s", what, d.Dropped.File, why, d.Kept.File)
}

// Deprecation says since when a tool is deprecated and what replaces it.
func Deprecation(d manifests.Deprecated) string {
	text := "deprecated"
	if d.Since != "" {
		text += " since " + d.Since
	}
	if d.Use != "" {
		text += "; use " + d.Use
	}
	if d.Message != "" {
		text += ": " + d.Message
	}
	return text
}
