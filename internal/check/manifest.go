package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/runtime/extism"
)

// manifests is manifest for those of one file. A problem that several functions of a plug-in share is reported once.
func (c *checker) manifests(ctx context.Context, all []*manifests.Manifest) (problems, warnings []manifests.Problem) {
	seen := map[manifests.Problem]bool{}
	isRepeated := func(p manifests.Problem) bool {
		repeated := seen[p]
		seen[p] = true
		return repeated
	}
	for _, m := range all {
		wrong, doubtful := c.manifest(ctx, m)
		problems = append(problems, slices.DeleteFunc(wrong, isRepeated)...)
		warnings = append(warnings, slices.DeleteFunc(doubtful, isRepeated)...)
	}
	return problems, warnings
}

func (c *checker) manifest(ctx context.Context, m *manifests.Manifest) (problems, warnings []manifests.Problem) {
	problems, warnings = runtime.Check(m), slices.Concat(unusedDefaults(ctx, m), scripts(m), unusable(m))
	unsupported := slices.ContainsFunc(problems, func(p manifests.Problem) bool {
		return strings.HasPrefix(p.Path, "module.") || p.Path == "execution"
	})
	if c.SkipModules || unsupported {
		return problems, warnings
	}
	info, err := runtime.InspectModule(m)
	if err != nil {
		return append(problems, c.moduleProblem(m, err)), warnings
	}
	return problems, append(warnings, warningsOf(m, info)...)
}

func (c *checker) moduleProblem(m *manifests.Manifest, err error) manifests.Problem {
	key, text, fix := "module.path", err.Error(), "compile the tool as a WASI command, for Go with GOOS=wasip1 GOARCH=wasm"
	file := m.Module.Path
	if m.Module.Language != modules.LanguageNone {
		key, fix = "module.script", "correct the script or its packages"
	}
	about, _ := errors.AsType[interface {
		error
		Library() string
	}](err)
	if about != nil && about.Library() != "" {
		key, file = keypath.Key("module.libraries", about.Library()), m.Module.Libraries[about.Library()]
		fix = "name a WebAssembly module in the manifest's folder"
	}
	switch problem, advice, ok := Advice(err); {
	case ok:
		text, fix = problem, advice
	case errors.Is(err, runtime.ErrDigest):
		key, fix = "module.sha256", "find out who changed the module; if the change is wanted, pin the new digest"
	case m.Module.Language == modules.LanguageNone &&
		IsMissing(filepath.Join(filepath.Dir(m.File), filepath.FromSlash(file))):
		fix = "compile the tool"
		if c.SkipFlag != "" {
			fix += ", or skip modules with " + c.SkipFlag
		}
	}
	return m.Problem(key, badModule, text, fix)
}

// warningsOf returns warnings about a manifest's settings of its module: random numbers that a snapshot repeats, unused
// libraries, and permissions without an import to use them. A tool that requests less is trusted more easily.
func warningsOf(m *manifests.Manifest, info runtime.ModuleInfo) []manifests.Problem {
	warnings := oversize(m, info)
	if m.Behavior.Snapshot == manifests.SnapshotStart && len(info.SeededGenerators) > 0 {
		warnings = append(warnings, m.Problem("behavior.snapshot", repeatedSeed,
			"the module links "+strings.Join(info.SeededGenerators, ", ")+
				"; its numbers repeat in calls that resume from a snapshot, if it is seeded before the program reads its input",
			"use a generator that is seeded after the input is read, as SNAPSHOTS.md shows for each language; or write "+
				"snapshot: off"))
	}
	if len(info.HostFunctions) > 0 {
		warnings = append(warnings, m.Problem("permissions.functions", needsProgram,
			"only a program that embeds Caisson and offers "+strings.Join(info.HostFunctions, ", ")+
				" can run it; this command offers no functions",
			"offer them with runtime.Options.HostFunctions, and grant them in the policy, as docs/extism.md says"))
	}
	for _, library := range info.Libraries {
		if library.Unused {
			warnings = append(warnings, m.Problem(keypath.Key("module.libraries", library.Name), unusedLibrary,
				fmt.Sprintf("nothing imports from %q, but every call gets an instance of it", library.Name),
				"remove it, or give it the name from which the module imports"))
		}
	}
	for _, key := range info.Unused {
		warnings = append(warnings, m.Problem(key, unusedPermission,
			"the manifest requests it, but the module has no import to use it",
			"remove the permission, or build the module with code that uses it"))
	}
	return warnings
}

// scalar are the types of arguments that a command line can hold.
const scalar = schema.String | schema.Number | schema.Boolean

// unusable returns warnings about parameters that cannot be passed as the manifest wants: as arguments, or by the host.
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
				warnings = append(warnings, m.Problem(key, unusableParameter,
					fmt.Sprintf("a call with the argument %s fails, because only a string, a number or a boolean can stand here",
						name),
					fmt.Sprintf(`pass it on standard input, with stdin: "{%s}", or change its type`, name)))
			case !alone && !parameters.Required[name] && n.Default == nil && !slices.Contains(m.Context, name):
				warnings = append(warnings, m.Problem(key, unusableParameter,
					fmt.Sprintf("a call without the argument %s fails, because it stands inside longer text", name),
					fmt.Sprintf(
						`give it a default, list it under required, or write "{%s}" as an element of its own, which is left out then`,
						name)))
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
		raised := "limits.memory"
		if extism.IsManifest(m.File) {
			raised = "memory.max_pages"
		}
		return []manifests.Problem{m.Problem(key, oversizeModule,
			fmt.Sprintf("every call fails, because the module starts with %s of memory and may have %s", starts, limit),
			"raise "+raised+", or build the module with a smaller initial memory")}
	}
	return nil
}

// scriptOption matches the options after which interpreters take a script: -c of Python and shells, also as -lc; -e of
// Perl, Ruby and JavaScript, also as -ne; and their long forms.
var scriptOption = regexp.MustCompile(`^(?:-[a-zA-Z]{0,2}[ceE]|--(?:command|eval|exec|execute|expression))$`)

// scripts returns a warning for each script in a manifest's command line into which arguments are inserted: who
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
		if !scriptOption.MatchString(option) || len(params) == 0 || script == "{"+params[0]+"}" ||
			script == "{"+params[0]+"|dash}" {
			continue
		}
		warnings = append(warnings, m.Problem(fmt.Sprintf("module.args[%d]", i), codeInjection,
			fmt.Sprintf("the argument %s becomes part of the text behind %s; if that is a script, the argument can be any code",
				params[0], option),
			fmt.Sprintf(
				`pass it as an element of its own, "{%s}", which the script reads from its arguments, or on standard input`,
				params[0])))
	}
	return warnings
}

// unusedDefaults returns a warning for each default that its own schema does not allow: it is never filled in.
func unusedDefaults(ctx context.Context, m *manifests.Manifest) (warnings []manifests.Problem) {
	var probe schema.Probe
	seen := map[*schema.Node]bool{}
	var visit func(n *schema.Node, path string)
	visit = func(n *schema.Node, path string) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		if n.Default != nil && !probe.Fits(ctx, n, string(n.Default)) {
			warnings = append(warnings, m.Problem(path+".default", unusedDefault,
				fmt.Sprintf("the default %s does not fit the schema beside it, so it is never filled in", n.Default),
				"write a value that the schema allows, or remove default"))
		}
		for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
			visit(n.Properties[name], keypath.Key(path+".properties", name))
		}
		visit(n.Items, path+".items")
	}
	visit(m.Parameters.Structure(), "parameters")
	return warnings
}
