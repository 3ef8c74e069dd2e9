package runtime

import (
	"context"
	"strings"
	"time"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/journal"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
	"github.com/caisson-run/caisson/runtime/internal/abi"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/tool"
)

// kind is one kind of permission, as this package enforces it.
type kind struct {
	name  permission.Kind
	asked func(m *manifests.Manifest) bool
	// module is the host module whose functions need the permission; empty where it is WASI that needs
	// it, or none. Its functions are package abi's, or those below.
	module    string
	functions func() []hostfuncs.Function
	// uses are the imports, as prefixes of "module.name", without which a module cannot use the permission.
	uses []string
	// decide computes what is effective, and adds the decisions. What it returns, if anything, enforces;
	// the rest is enforced by fields of the permit.
	decide func(p *permit, r *Runtime, m *manifests.Manifest, grants manifests.Grants) (enforcer, error)
}

// enforcer holds what one tool may do of one kind that its own host functions alone use. It is immutable.
type enforcer interface {
	Decisions() []tool.Decision
	// Open begins one call: it returns the context of its guest's host functions, and the journal of what
	// they will have been asked.
	Open(ctx context.Context, now func() time.Time) (context.Context, *journal.Journal)
}

// kinds is the table of all kinds of permissions that are enforced, in the order of their decisions.
func kinds() []kind {
	return []kind{
		{
			name: "files", asked: func(m *manifests.Manifest) bool { return len(m.Permissions.Files) > 0 },
			uses:   []string{wasi.ModuleName + ".path_", wasi.ModuleName + ".fd_readdir"},
			decide: (*permit).decideFiles,
		},
		{
			name: "context", asked: func(m *manifests.Manifest) bool { return len(m.Context) > 0 },
			decide: (*permit).decideContext,
		},
		{
			name: "env", asked: func(m *manifests.Manifest) bool { return len(m.Permissions.Env) > 0 },
			uses:   []string{wasi.ModuleName + ".environ_"},
			decide: (*permit).decideEnv,
		},
		{
			name: "secrets", asked: func(m *manifests.Manifest) bool { return len(m.Permissions.Secrets) > 0 },
			module: abi.Secrets, uses: []string{abi.Network + "."},
			decide: (*permit).decideSecrets,
		},
		{
			name: "network", asked: func(m *manifests.Manifest) bool { return len(m.Permissions.Network) > 0 },
			module: abi.Network, uses: []string{abi.Network + "."},
			decide: (*permit).decideNetwork,
		},
		{
			name: "tools", asked: func(m *manifests.Manifest) bool { return len(m.Permissions.Tools) > 0 },
			module: abi.Tools, uses: []string{abi.Tools + "."},
			decide: (*permit).decideCalls,
		},
	}
}

// asksHost reports whether a tool may ask the host for anything that needs a permission and that
// WASI does not have.
func asksHost(m *manifests.Manifest) bool {
	for _, k := range kinds() {
		if k.module != "" && k.asked(m) {
			return true
		}
	}
	return false
}

// offered are the functions that modules may import. Those of abi.IO, abi.Stream and abi.Context need no
// permission: the first reads the answers of the rest, the second shows a part of the call's output sooner,
// and the third tells what has been granted already.
func offered() []hostfuncs.Function {
	functions := append(wasi.Functions(), abi.Functions()...)
	for _, k := range kinds() {
		if k.functions != nil {
			functions = append(functions, k.functions()...)
		}
	}
	return functions
}

// isUsed reports whether some import is one that the kind is of use to.
func (k kind) isUsed(imports []string) bool {
	if len(k.uses) == 0 {
		return true
	}
	for _, name := range imports {
		for _, prefix := range k.uses {
			if strings.HasPrefix(name, prefix) {
				return true
			}
		}
	}
	return false
}
