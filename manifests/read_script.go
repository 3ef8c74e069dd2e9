package manifests

import (
	"context"
	"fmt"
	"path"

	"github.com/caisson-run/caisson/internal/modules"
)

const maxPackages = 32

// languages are the languages of scripts, by the ends of file names.
var languages = map[string]modules.Language{".py": modules.Python, ".js": modules.JavaScript,
	".mjs": modules.JavaScript}

// script reads a module that is a script.
func (r *reader) script(n *node, at string, m *modules.Module) {
	notFor := func(key, why string) field {
		return field{key, "", func(_ *node, at string) { r.conflict(at, why, "remove "+key) }}
	}
	const ownProtocol = "a script gets its arguments as an object, and returns its result"
	r.object(n, at,
		required("script", "script: and the file, such as tool.py", &m.Path, r.scriptPath),
		optional("packages", &m.Packages, distinctOf(r, maxPackages, r.packagePath)),
		field{"sample", "", func(n *node, at string) {
			if r.kind(n, at, objectNode, "write the arguments of a call as an object") {
				m.Sample = n.json()
			}
		}},
		optional("sha256", &m.SHA256, r.digest),
		optional("stderr", &m.Stderr, choice(r, modules.StderrPrivate)),
		notFor("path", "a tool has either a module or a script"),
		notFor("abi", "a script runs in an interpreter that Caisson knows"),
		notFor("entry", "a script has a function run (Python) or a default export (JavaScript)"),
		notFor("config", "a script has no configuration"),
		notFor("variables", "a script keeps what it needs in variables of its own"),
		notFor("libraries", "a script has packages instead"),
		notFor("args", "a script has no command line"),
		notFor("stdin", ownProtocol),
		notFor("stdout", ownProtocol),
		notFor("success_codes", "a script has no exit code"),
	)
	m.Language = languages[path.Ext(m.Path)]
	m.Stdout = modules.StdoutResult
}

// scriptOnly reports a key that only scripts have.
func (r *reader) scriptOnly(_ *node, at string) {
	r.conflict(at, "only a script has it", "remove it, or write script: and a file such as tool.py instead of path")
}

func (r *reader) scriptPath(n *node, at string) string {
	file := r.filePath(n, at, "a script is a file", "tool.py")
	if file != "" && languages[path.Ext(file)] == modules.LanguageNone {
		r.invalid(n, at, fmt.Sprintf("%q is in no language that has an interpreter here", clip(file)),
			"write a file that ends in .py, .js or .mjs; for a WebAssembly module, write path instead of script")
		return ""
	}
	return file
}

func (r *reader) packagePath(n *node, at string) string {
	return r.filePath(n, at, "a package is a folder or a wheel", "vendor/markdown")
}

// checkSample checks that a script's sample is a call that the script could get.
func (r *reader) checkSample(m *Manifest) {
	if m.Module.Sample == nil || m.Parameters == nil {
		return
	}
	var unending context.Context // loading a manifest has no deadline
	if err := m.Parameters.Validate(unending, m.Module.Sample); err != nil {
		r.conflict("module.sample", "the sample does not fit the parameters: "+firstViolation(err),
			"write the arguments of a call that may be made")
	}
}
