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
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/view"
	"github.com/caisson-run/caisson/registry"
)

const listHelp = `List the tools, and the tools that were left out because another tool already has the same
name or a name that looks the same. All flags of "caisson call" are accepted. Those that
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
		Use:   "list",
		Short: "list the tools",
		Long:  listHelp,
		Example: "  caisson list --tools ./first --tools ./second\n  caisson list --config caisson.yaml --definitions " +
			"openai\n  caisson list --definitions responses --strict",
		Args: positional(0, 0, ""),
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
	o.agentFlag(command, "with --agent: use the agents of the tenant `NAME`")
	o.stateFlag(command, "with --agent: agents are stored in `DIR`")
	o.ledgerFlag(command, "with --agent: agents are stored")
	o.cacheFlag(command,
		"cache the index of manifests in `DIR`; \"\" disables the cache (default: in the user's cache folder)")
	o.logFlag(command)
	flags := command.Flags()
	flags.BoolVar(&all, "all", false, "also show hidden tools, and with --agent those that the agent may not call")
	flags.StringVar(&dialect, "definitions", "", "print the tools as offered to a model, in the format of `DIALECT`: "+
		strings.Join(dialects.Names(), ", "))
	flags.BoolVar(&strict, "strict", false,
		"with --definitions: make schemas strict where possible, and ask the provider to enforce them")
	o.outputFlags(command, "print one JSON object")
	o.sameFlags(command)
	o.completes(command)
	return command
}

func (o *options) list(ctx context.Context, all bool) (err error) {
	h, err := o.open(ctx, openMode{})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, h.close(ctx)) }()
	allowed, err := h.allowedTools(ctx)
	if err != nil {
		return err
	}
	c := view.Catalogue{Catalogue: h.Catalogue(allowed), Problems: jsontext.List(h.problems())}
	if !all {
		c.Tools = slices.DeleteFunc(c.Tools, func(t registry.Listing) bool { return t.Hidden || !t.Allowed })
	}
	err = o.show(c, c.Table(widthOf(o.stdout)))
	if err == nil && len(h.registry.List()) == 0 {
		o.hint(h.whereTools())
	}
	h.noteUnapplied()
	return err
}

// definitions prints the tools in a dialect, and findings about them as hints.
func (o *options) definitions(ctx context.Context, name string, strict bool) (err error) {
	dialect, err := known.ByName(name)
	if err != nil {
		return failed(exitUsage, fmt.Sprintf("--definitions %q: there is no such dialect", name),
			"want one of "+strings.Join(dialects.Names(), ", "))
	}
	h, err := o.open(ctx, openMode{})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, h.close(ctx)) }()
	allowed, err := h.allowedTools(ctx)
	if err != nil {
		return err
	}
	document, findings, err := dialect.Definitions(h.Catalogue(allowed).Definitions(),
		dialects.DefinitionOptions{Strict: strict})
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

// refusal returns an error if the provider would refuse the definitions. Its hints have the fix, and other reasons.
func refusal(dialect string, findings []dialects.Finding) error {
	refused := slices.DeleteFunc(slices.Clone(findings),
		func(f dialects.Finding) bool { return f.Severity != dialects.Refused || f.Adapted })
	if len(refused) == 0 {
		return nil
	}
	first := refused[0]
	hints := []string{placeOfFinding(first) + ": " + first.Fix}
	for _, f := range refused[1:] {
		hints = append(hints, describeFinding(f))
	}
	return failed(exitUsage, fmt.Sprintf("--definitions %s: %s: %s", dialect, placeOfFinding(first), first.Message),
		hints...)
}

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
