package runtime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/permit"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// Check returns the manifest's requests that this version does not support. Loading such a
// manifest fails, because ignoring a key would break the promise that it makes.
func Check(m *manifests.Manifest) []manifests.Problem {
	var problems []manifests.Problem
	for _, rule := range unenforced {
		if !rule.asked(m) {
			continue
		}
		problems = append(problems,
			m.Problem(rule.path, mistake.NotEnforced, "this version of Caisson does not support "+rule.what, rule.fix))
	}
	return problems
}

// unenforced lists the requests of manifests that this version does not support.
var unenforced = []struct {
	path, what, fix string
	asked           func(*manifests.Manifest) bool
}{
	{"module.path", "modules from a registry", "name a file in the manifest's folder",
		func(m *manifests.Manifest) bool { return strings.HasPrefix(m.Module.Path, "oci://") }},
	{"permissions.kv", "the key-value store", "remove the permission",
		func(m *manifests.Manifest) bool { return m.Permissions.KV != nil }},
	{"permissions.llm", "the host's language model", "remove the permission",
		func(m *manifests.Manifest) bool { return m.Permissions.LLM != nil }},
}

func checkSupported(m *manifests.Manifest) error {
	if m.Execution == manifests.ExecutionHost {
		return fmt.Errorf("%w: %s is a Go function and has none", ErrModule, m.Name)
	}
	if problems := Check(m); len(problems) > 0 {
		return &manifests.Error{Problems: problems}
	}
	return nil
}

// unusedPermissions returns the permissions that the manifest requests but the module cannot use, because
// neither it nor a library has the imports.
func unusedPermissions(m *manifests.Manifest, all []wasm.Import) []string {
	var imports, found []string
	for _, i := range all {
		imports = append(imports, i.Module+"."+i.Name)
	}
	for _, k := range permit.Kinds() {
		if k.Asked(m) && !k.IsUsed(imports) {
			found = append(found, "permissions."+string(k.Name))
		}
	}
	slices.Sort(found)
	return found
}
