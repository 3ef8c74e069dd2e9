package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/known"
)

// definitionsFlags say in which form tools are printed as a model is offered them.
type definitionsFlags struct {
	dialect       string
	strict, adapt bool
}

func (f *definitionsFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.dialect, "definitions", "", "print the tools as a model is offered them, in the form of a `DIALECT`: "+strings.Join(dialects.Names(), ", "))
	flags.BoolVar(&f.strict, "strict", false, "with --definitions: ask the provider to hold the model to the schemas, where it can")
	flags.BoolVar(&f.adapt, "adapt", false, "with --definitions: change schemas to what the provider takes")
}

// given reports whether definitions are asked for. It fails on flags that go with them alone.
func (f *definitionsFlags) given(command *cobra.Command) (bool, error) {
	if command.Flags().Changed("definitions") {
		return true, nil
	}
	if f.strict || f.adapt {
		return false, usageError(command, "--strict and --adapt go with --definitions DIALECT")
	}
	return false, nil
}

// definitions prints the tools in a dialect, and what the provider makes of them as hints.
func (o *options) definitions(command *cobra.Command, env environment, f definitionsFlags) (err error) {
	ctx := command.Context()
	dialect, err := known.ByName(f.dialect)
	if err != nil {
		return failed(exitUsage, fmt.Sprintf("--definitions %q: there is no such dialect", f.dialect), "want one of "+strings.Join(dialects.Names(), ", "))
	}
	h, err := o.open(ctx, env, opening{})
	if err != nil {
		return err
	}
	defer func() { err = firstOf(err, h.close(ctx)) }()
	document, findings, err := dialect.Definitions(h.Definitions(), dialects.DefinitionOptions{Strict: f.strict, Adapt: f.adapt})
	var wrong *dialects.Error
	if errors.As(err, &wrong) {
		return failed(exitUsage, wrong.Error())
	}
	if err != nil {
		return err
	}
	if !o.quiet {
		for _, finding := range findings {
			printHint(env.stderr, describeFinding(finding))
		}
	}
	return env.printJSON(document)
}

// describeFinding says where something stands, what becomes of it, and what to do.
func describeFinding(f dialects.Finding) string {
	where := f.Tool
	if f.Path != "" {
		where += ": " + f.Path
	}
	text := fmt.Sprintf("%s: %s (%s)", where, f.Message, f.Severity)
	switch {
	case f.Adapted:
		text += "; adapted: " + strings.ReplaceAll(f.Fix, ", as Adapt does", "")
	case f.Fix != "":
		text += "; " + strings.ReplaceAll(f.Fix, "Adapt", "--adapt")
	}
	return text
}
