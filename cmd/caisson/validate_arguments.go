package main

import (
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/schema"
	"github.com/caisson-run/caisson/runtime"
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
			warnings = append(warnings, m.Problem("parameters.properties."+name, unusableParameter,
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
		return []manifests.Problem{m.Problem(key, oversizeModule, fmt.Sprintf("every call fails, because the module starts with %s of memory and may have %s", starts, limit),
			"raise limits.memory, or build the module with a smaller initial memory")}
	}
	return nil
}
