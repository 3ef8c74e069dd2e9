package runtime

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/journal"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/abi"
	"github.com/caisson-run/caisson/runtime/internal/extism"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/tool"
)

// kind is one kind of permission, as this package enforces it.
type kind struct {
	name  permission.Kind
	asked func(m *manifests.Manifest) bool
	// module is the host module whose functions need the permission. It is empty if only WASI
	// functions need it, or none. Its functions are in package abi or returned by functions.
	module    string
	functions func() []hostfuncs.Function
	// uses are prefixes of "module.name". A module that imports none of them cannot use the
	// permission. If uses is empty, every module can.
	uses []string
	// decide computes the effective permissions and adds the decisions to the permit. If it
	// returns an enforcer, that enforces them; otherwise fields of the permit do.
	decide func(p *permit, r *Runtime, m *manifests.Manifest, grants manifests.Grants) (enforcer, error)
}

// enforcer holds one tool's permissions of one kind, for kinds that only their own host functions
// use. It is immutable.
type enforcer interface {
	Decisions() []tool.Decision
	// Open begins one call. It returns the context for the guest's host functions and the journal
	// in which they record requests.
	Open(ctx context.Context, now func() time.Time) (context.Context, *journal.Journal)
}

// pluginRequest is the import with which an Extism plug-in sends requests.
const pluginRequest = extism.Module + ".http_request"

// kinds returns all kinds of permissions that are enforced, in the order of their decisions. The table
// is built once and never written to.
var kinds = sync.OnceValue(func() []kind {
	return []kind{
		{
			name: "files", asked: func(m *manifests.Manifest) bool { return len(m.Permissions.Files) > 0 },
			uses:   wasi.Prefixes("path_", "fd_readdir"),
			decide: (*permit).decideFiles,
		},
		{
			name: "context", asked: func(m *manifests.Manifest) bool { return len(m.Context) > 0 },
			decide: (*permit).decideContext,
		},
		{
			name: "env", asked: func(m *manifests.Manifest) bool { return len(m.Permissions.Env) > 0 },
			uses:   wasi.Prefixes("environ_"),
			decide: (*permit).decideEnv,
		},
		{
			name: "secrets", asked: func(m *manifests.Manifest) bool { return len(m.Permissions.Secrets) > 0 },
			module: abi.Secrets, uses: []string{abi.Network + ".", pluginRequest},
			decide: (*permit).decideSecrets,
		},
		{
			name: "network", asked: func(m *manifests.Manifest) bool { return len(m.Permissions.Network) > 0 },
			module: abi.Network, uses: []string{abi.Network + ".", pluginRequest},
			decide: (*permit).decideNetwork,
		},
		{
			name: "tools", asked: func(m *manifests.Manifest) bool { return len(m.Permissions.Tools) > 0 },
			module: abi.Tools, uses: []string{abi.Tools + "."},
			decide: (*permit).decideCalls,
		},
		{
			name: "functions", asked: func(m *manifests.Manifest) bool { return len(m.Permissions.Functions) > 0 },
			decide: (*permit).decideFunctions,
		},
	}
})

// offered returns the functions that modules may import. Those of abi.IO, abi.Stream and
// abi.Context need no permission: abi.IO reads the responses of the other modules, abi.Stream
// shows output of the call early, and abi.Context returns what has been granted already.
func offered() []hostfuncs.Function {
	functions := append(wasi.Functions(), abi.Functions()...)
	for _, k := range kinds() {
		if k.functions != nil {
			functions = append(functions, k.functions()...)
		}
	}
	return functions
}

// isUsed reports whether a module with these imports can use the kind's permissions.
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
