package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/caisson-run/caisson/internal/spelling"
)

// flagFailure returns the failure for a flag that a command does not have, or whose value is wrong.
func flagFailure(command *cobra.Command, err error) error {
	if secret, ok := errors.AsType[secretError](err); ok {
		return usageError(command, "--secret: "+string(secret))
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(command, unknown)
	}
	text := err.Error()
	if lacking, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		flag := lacking.GetFlag()
		value, _ := pflag.UnquoteUsage(flag)
		text = fmt.Sprintf("--%s needs a value: --%s %s", flag.Name, flag.Name, value)
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		want := ""
		switch wrong.GetFlag().Value.Type() {
		case "bool":
			want = "want true or false after the =, or the flag alone, which means true"
		case "int", "int64":
			want = "want a whole number"
		}
		if want != "" {
			text = fmt.Sprintf("invalid argument %q for \"--%s\" flag: %s", wrong.GetValue(), wrong.GetFlag().Name, want)
		}
	}
	return usageError(command, text)
}

// unknownFlag returns the failure for a flag that a command does not have. It says which flag may be meant, or to which
// command it belongs.
func unknownFlag(command *cobra.Command, unknown *pflag.NotExistError) *failure {
	name, text := unknown.GetSpecifiedName(), ""
	if group := unknown.GetSpecifiedShortnames(); group != "" {
		name, _, _ = strings.Cut(group, "=")
		text = "unknown flag: -" + name
	} else {
		text = "unknown flag: --" + name
	}
	var names []string
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			names = append(names, flag.Name)
		}
	})
	if near := spelling.Nearest(name, names); near != "" {
		text += "; did you mean --" + near + "?"
		return usageError(command, text)
	}
	failure := usageError(command, text)
	switch {
	case command.Name() == callName:
		return failure.withHints("the arguments of the tool have no dashes; write them as KEY=VALUE words, such as " + name + "=VALUE")
	case !command.HasParent():
		return failure.withHints(`flags follow the command, as in "caisson list --tools DIR"`)
	}
	return failure
}
