package permit

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

// Kind is one kind of permission, as the runtime enforces it.
type Kind struct {
	Name  permission.Kind
	Asked func(m *manifests.Manifest) bool // whether a manifest requests any
	// Module is the host module whose functions need the permission. It is empty if only WASI
	// functions need it, or none. Its functions are in package abi or returned by Functions.
	Module    string
	Functions func() []hostfuncs.Function // may be nil
	// uses are prefixes of "module.name". A module that imports none of them cannot use the
	// permission. If uses is empty, every module can.
	uses []string
	// decide computes the effective permissions. If it returns an enforcer, that enforces them; otherwise it has added
	// them and the decisions to fields of the permit.
	decide func(p *Permit, o Options) (Enforcer, error)
}

// Enforcer holds one tool's permissions of one kind, for kinds that only their own host functions
// use. It is immutable.
type Enforcer interface {
	Decisions() []tool.Decision
	// Open begins one call. It returns the context for the guest's host functions and the journal
	// in which they record requests.
	Open(ctx context.Context, now func() time.Time) (context.Context, *journal.Journal)
}

// pluginRequest is the import with which an Extism plug-in sends requests.
const pluginRequest = extism.Module + ".http_request"

// Kinds returns all kinds of permissions that are enforced, in the order of their decisions. The caller must not modify
// them.
var Kinds = sync.OnceValue(func() []Kind {
	return []Kind{
		{
			Name: "files", Asked: func(m *manifests.Manifest) bool { return len(m.Permissions.Files) > 0 },
			uses:   wasi.Prefixes("path_", "fd_readdir"),
			decide: inFields((*Permit).decideFiles),
		},
		{
			Name: "context", Asked: func(m *manifests.Manifest) bool { return len(m.Context) > 0 },
			decide: inFields((*Permit).decideContext),
		},
		{
			Name: "env", Asked: func(m *manifests.Manifest) bool { return len(m.Permissions.Env) > 0 },
			uses:   wasi.Prefixes("environ_"),
			decide: inFields((*Permit).decideEnv),
		},
		{
			Name: "secrets", Asked: func(m *manifests.Manifest) bool { return len(m.Permissions.Secrets) > 0 },
			Module: abi.Secrets, uses: []string{abi.Network + ".", pluginRequest},
			decide: inFields((*Permit).decideSecrets),
		},
		{
			Name: "network", Asked: func(m *manifests.Manifest) bool { return len(m.Permissions.Network) > 0 },
			Module: abi.Network, uses: []string{abi.Network + ".", pluginRequest},
			decide: inFields((*Permit).decideNetwork),
		},
		{
			Name: "tools", Asked: func(m *manifests.Manifest) bool { return len(m.Permissions.Tools) > 0 },
			Module: abi.Tools, uses: []string{abi.Tools + "."},
			decide: inFields((*Permit).decideCalls),
		},
		{
			Name: "functions", Asked: func(m *manifests.Manifest) bool { return len(m.Permissions.Functions) > 0 },
			decide: decideFunctions,
		},
	}
})

// IsUsed reports whether a module with these imports can use the kind's permissions.
func (k Kind) IsUsed(imports []string) bool {
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

// inFields returns a decide function for a kind whose permissions are fields of the permit.
func inFields(decide func(p *Permit, o Options) error) func(p *Permit, o Options) (Enforcer, error) {
	return func(p *Permit, o Options) (Enforcer, error) { return nil, decide(p, o) }
}
