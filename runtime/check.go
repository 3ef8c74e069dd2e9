package runtime

import (
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/manifests"
)

// Check returns what a manifest asks for that this version does not enforce or run yet.
// Loading such a manifest fails: to ignore the key would be to break its promise.
func Check(m *manifests.Manifest) []manifests.Problem {
	var problems []manifests.Problem
	for _, rule := range unenforced {
		if !rule.asked(m) {
			continue
		}
		line := m.Line(rule.path)
		problems = append(problems, manifests.Problem{
			File: m.File, Line: max(line, 1), Column: 1, Path: rule.path, Kind: manifests.NotEnforced,
			Message: "this version of Caisson does not support " + rule.what,
			Fix:     rule.fix,
		})
	}
	return problems
}

// unenforced lists what manifests can say and this version can't do.
var unenforced = []struct {
	path, what, fix string
	asked           func(*manifests.Manifest) bool
}{
	{"module.path", "modules from a registry", "name a file in the manifest's folder",
		func(m *manifests.Manifest) bool { return strings.HasPrefix(m.Module.Path, "oci://") }},
	{"module.abi", "the extism contract", "compile the tool as a WASI command, abi: wasi",
		func(m *manifests.Manifest) bool { return m.Module.ABI == manifests.ABIExtism }},
	{"permissions.kv", "the key-value store", "remove the permission",
		func(m *manifests.Manifest) bool { return m.Permissions.KV != nil }},
	{"permissions.llm", "the host's language model", "remove the permission",
		func(m *manifests.Manifest) bool { return m.Permissions.LLM != nil }},
}

func checked(m *manifests.Manifest) error {
	if problems := Check(m); len(problems) > 0 {
		return fmt.Errorf("runtime: %w", &manifests.Error{Problems: problems})
	}
	return nil
}
