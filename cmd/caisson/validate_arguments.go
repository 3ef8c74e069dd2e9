package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/runtime/extism"
	"github.com/caisson-run/caisson/tool"
)

// scalar are the types of arguments that a command line can hold.
const scalar = schema.String | schema.Number | schema.Boolean

// unusable returns warnings about parameters that calls cannot use as the manifest wants to pass them: on the command
// line, or from the host.
func unusable(m *manifests.Manifest) (warnings []manifests.Problem) {
	parameters := m.Parameters.Structure()
	for i, template := range m.Module.Args {
		for _, name := range template.Params() {
			n := parameters.Properties[name]
			if n == nil {
				continue
			}
			alone := slices.Contains([]string{"{" + name + "}", "{" + name + "|dash}"}, template.String())
			key := fmt.Sprintf("module.args[%d]", i)
			switch {
			case n.Types&scalar == 0 && !(alone && n.Types.Has(schema.Array)):
				warnings = append(warnings, m.Problem(key, unusableParameter, fmt.Sprintf("a call with the argument %s fails, because only a string, a number or a boolean can stand here", name),
					fmt.Sprintf(`pass it on standard input, with stdin: "{%s}", or change its type`, name)))
			case !alone && !parameters.Required[name] && n.Default == nil && !slices.Contains(m.Context, name):
				warnings = append(warnings, m.Problem(key, unusableParameter, fmt.Sprintf("a call without the argument %s fails, because it stands inside longer text", name),
					fmt.Sprintf(`give it a default, list it under required, or write "{%s}" as an element of its own, which is left out then`, name)))
			}
		}
	}
	for _, name := range m.Context {
		if n := parameters.Properties[name]; n != nil && !n.Types.Has(schema.String) {
			warnings = append(warnings, m.Problem(keypath.Key("parameters.properties", name), unusableParameter,
				"every call is denied, because context values are text and the parameter allows none", "write type: string"))
		}
	}
	return warnings
}

// oversize returns a warning if a module cannot start within the memory that its manifest asks for.
func oversize(m *manifests.Manifest, info runtime.ModuleInfo) []manifests.Problem {
	key, limit := "limits.memory", m.Limits.Memory
	if limit == 0 {
		key, limit = "module.path", manifests.MaxMemory
	}
	if starts := manifests.Bytes(info.MemoryBytes); starts > limit {
		raised := limits[tool.Memory].key
		if extism.IsManifest(m.File) {
			raised = limits[tool.Memory].member
		}
		return []manifests.Problem{m.Problem(key, oversizeModule, fmt.Sprintf("every call fails, because the module starts with %s of memory and may have %s", starts, limit),
			"raise "+raised+", or build the module with a smaller initial memory")}
	}
	return nil
}

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
