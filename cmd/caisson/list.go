package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/known"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
)

const listHelp = `List the tools, and the tools that were left out because another tool already has their
name, or one that looks like it. All flags of "caisson call" are accepted. Those that
matter only when a call runs are not shown below, and have no effect here.

A hidden tool, whose manifest says behavior: {hidden: true}, is offered to models but not
shown to people: it is listed only with --all, and "caisson batch --stream" prints no
events of its calls. An unavailable tool cannot be called, because it lacks a setting that
its manifest requires, such as a secret.

--definitions prints the tools as offered to a language model, hidden tools included and
unavailable ones left out. They are sorted by name and byte-for-byte identical each time,
so that prompt caches stay warm. Standard error reports the parts of a definition that the
provider would ignore, and the changes that --strict made. If the provider would refuse a
tool, nothing is printed and the exit code is 2.`

func newList(o options) *cobra.Command {
	var all bool
	var dialect string
	var strict bool
	command := &cobra.Command{
		Use:     "list",
		Short:   "list the tools",
		Long:    listHelp,
		Example: "  caisson list --tools ./first --tools ./second\n  caisson list --config caisson.yaml --definitions openai\n  caisson list --definitions responses --strict",
		Args:    positional(0, 0, ""),
		RunE: func(command *cobra.Command, _ []string) error {
			switch {
			case command.Flags().Changed("definitions"):
				return o.definitions(command.Context(), dialect, strict)
			case strict:
				return usageError(command, "--strict needs --definitions DIALECT")
			}
			return o.list(command.Context(), all)
		},
	}
	o.toolFlags(command)
	o.agentFlag(command)
	o.stateFlag(command, "with --agent: where agents are stored, `DIR`")
	o.cacheFlag(command, "cache the index of manifests in `DIR`; \"\" disables the cache (default: in the user's cache folder)")
	o.logFlag(command)
	flags := command.Flags()
	flags.BoolVar(&all, "all", false, "also show hidden tools, and with --agent those that the agent may not call")
	flags.StringVar(&dialect, "definitions", "", "print the tools as offered to a model, in the format of `DIALECT`: "+strings.Join(dialects.Names(), ", "))
	flags.BoolVar(&strict, "strict", false, "with --definitions: make schemas strict where possible, and ask the provider to enforce them")
	o.outputFlags(command, "print one JSON object")
	o.sameFlags(command)
	o.completes(command)
	return command
}

// catalogue is what list prints as JSON.
type catalogue struct {
	registry.Catalogue
	// Problems say which manifests are broken, and which sources are not loaded.
	Problems []manifests.Problem `json:"problems"`
}

func (o *options) list(ctx context.Context, all bool) (err error) {
	h, err := o.open(ctx, opening{})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, h.close(ctx)) }()
	allowed, err := h.allowedTools()
	if err != nil {
		return err
	}
	c := catalogue{h.Catalogue(allowed), list(h.problems())}
	if !all {
		c.Tools = slices.DeleteFunc(c.Tools, func(t registry.Listing) bool { return t.Hidden || !t.Allowed })
	}
	err = o.show(c, c.table(widthOf(o.stdout)))
	if err == nil && len(h.registry.List()) == 0 {
		o.hint(h.whereTools())
	}
	h.noteUnapplied()
	return err
}

// allowedTools returns the names of the chosen agent's tools, or nil if no agent is chosen.
func (h *host) allowedTools() ([]string, error) {
	if h.options.agent == "" {
		return nil, nil
	}
	agent, err := h.agentNamed(h.options.agent)
	return list(agent.AllowedTools), err
}

// deprecation says since when a tool is deprecated and what replaces it.
func deprecation(d manifests.Deprecated) string {
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

// table returns the catalogue as text for people, of lines as wide as most if possible.
func (c catalogue) table(most int) string {
	rows := [][]string{{"NAME", "WHAT IT IS", "SOURCE", "NOTES"}}
	for _, t := range c.Tools {
		rows = append(rows, []string{t.Name, cmp.Or(t.Label, clip(t.Summary, 48)), t.Source, strings.Join(notesOn(t), "; ")})
	}
	text := fitted(rows, most)
	if len(c.Duplicates) > 0 {
		text += "\n"
	}
	for _, d := range c.Duplicates {
		text += sanitiseLine(keptOut(d)) + "\n"
	}
	return text
}

// notesOn returns what a table says of a tool beside its name.
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
			notes = append(notes, deprecation(old))
		}
	}
	for _, note := range []struct {
		is   bool
		note string
	}{
		{t.ReadOnly, "read-only"}, {t.Execution == manifests.ExecutionClient, "run by the client"}, {t.Asks != "", "needs approval"},
		{t.Type != manifests.FunctionTool, string(t.Type)}, {t.Final, "final"}, {t.Hidden, "hidden"},
	} {
		if note.is {
			notes = append(notes, note.note)
		}
	}
	var aliases []string
	for _, alias := range t.Aliases {
		if alias == old.Alias {
			alias += " (" + deprecation(old) + ")"
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

// keptOut says which name was rejected, and why.
func keptOut(d *registry.DuplicateError) string {
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

// definitions prints the tools in a dialect, and findings about them as hints.
func (o *options) definitions(ctx context.Context, name string, strict bool) (err error) {
	dialect, err := known.ByName(name)
	if err != nil {
		return failed(exitUsage, fmt.Sprintf("--definitions %q: there is no such dialect", name), "want one of "+strings.Join(dialects.Names(), ", "))
	}
	h, err := o.open(ctx, opening{})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, h.close(ctx)) }()
	allowed, err := h.allowedTools()
	if err != nil {
		return err
	}
	document, findings, err := dialect.Definitions(h.Catalogue(allowed).Definitions(), dialects.DefinitionOptions{Strict: strict})
	if wrong, ok := errors.AsType[*dialects.Error](err); ok {
		return failed(exitUsage, wrong.Error())
	}
	if err != nil {
		return err
	}
	if err := refusal(name, findings); err != nil {
		return err
	}
	for _, finding := range findings {
		o.hint(describeFinding(finding))
	}
	return o.printJSON(document)
}

// refusal returns an error if the provider would refuse a request with the definitions. Its hints say what
// to do about the first reason, and what the others are.
func refusal(dialect string, findings []dialects.Finding) error {
	refused := slices.DeleteFunc(slices.Clone(findings), func(f dialects.Finding) bool { return f.Severity != dialects.Refused || f.Adapted })
	if len(refused) == 0 {
		return nil
	}
	first := refused[0]
	hints := []string{placeOfFinding(first) + ": " + first.Fix}
	for _, f := range refused[1:] {
		hints = append(hints, describeFinding(f))
	}
	return failed(exitUsage, fmt.Sprintf("--definitions %s: %s: %s", dialect, placeOfFinding(first), first.Message), hints...)
}

// placeOfFinding names the tool and the place in its schema.
func placeOfFinding(f dialects.Finding) string {
	if f.Path == "" {
		return f.Tool
	}
	return f.Tool + ": " + f.Path
}

// describeFinding describes a finding: its place, its effect and what to do.
func describeFinding(f dialects.Finding) string {
	text := fmt.Sprintf("%s: %s (%s)", placeOfFinding(f), f.Message, f.Severity)
	switch {
	case f.Adapted:
		text += "; adapted: " + f.Fix
	case f.Fix != "":
		text += "; " + f.Fix
	}
	return text
}
