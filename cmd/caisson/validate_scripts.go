package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/caisson-run/caisson/manifests"
)

// scriptOption matches the options behind which interpreters take a script: -c of Python and shells, also as -lc; -e of
// Perl, Ruby and JavaScript, also as -ne; and their long forms.
var scriptOption = regexp.MustCompile(`^(?:-[a-zA-Z]{0,2}[ceE]|--(?:command|eval|exec|execute|expression))$`)

// scripts returns a warning for each script in a manifest's command line into which arguments are inserted: whoever
// chooses an argument then writes a part of the program. An argument that is the whole script is meant to be one.
func scripts(m *manifests.Manifest) (warnings []manifests.Problem) {
	before := ""
	for i, template := range m.Module.Args {
		option, script := before, template.String()
		if before = script; script == "--" {
			break // what follows are no options
		}
		if name, value, joined := strings.Cut(script, "="); joined && strings.HasPrefix(name, "--") {
			option, script = name, value
		}
		params := template.Params()
		if !scriptOption.MatchString(option) || len(params) == 0 || script == "{"+params[0]+"}" || script == "{"+params[0]+"|dash}" {
			continue
		}
		warnings = append(warnings, m.Problem(fmt.Sprintf("module.args[%d]", i), codeInjection,
			fmt.Sprintf("the argument %s becomes part of the text behind %s; if that is a script, the argument can be any code", params[0], option),
			fmt.Sprintf(`pass it as an element of its own, "{%s}", which the script reads from its arguments, or on standard input`, params[0])))
	}
	return warnings
}
