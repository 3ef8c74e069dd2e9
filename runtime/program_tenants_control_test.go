package runtime

import (
	"context"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
)

// TestUnguardedStartsOfTenantsMeet is the control of TestStartsOfTenantsNeverMeet: without
// the guard, one tenant's call resumes what another's has started, with the harm that is
// foreseen for it.
func TestUnguardedStartsOfTenantsMeet(t *testing.T) {
	eachStart(t, func(t *testing.T, s start, guest *Tool) {
		if s.reason == "" {
			return // nothing is refused
		}
		u := newUnguardedTool(t, guest)
		other, own := u.fresh(t, "ann"), u.fresh(t, "dieter")
		started, err := u.start(t, "ann")
		if s.unguarded == never {
			require.ErrorIs(t, err, engine.ErrNotStarted)
			return
		}
		require.NoError(t, err)
		defer func() { require.NoError(t, started.Drop()) }()
		resumed := u.resume(t, started, "dieter")
		switch s.unguarded {
		case leaks:
			assert.NotEqual(t, other.told(t, "ann"), own.told(t, "dieter"))
			assert.Equal(t, other.told(t, "ann"), resumed.told(t, "dieter"))
		case loses:
			assert.NotEqual(t, own, resumed)
		case equals:
			assert.Equal(t, own, resumed)
		default:
			require.Fail(t, "it does not say what would come of it")
		}
	})
}

// unguardedTool is a tool whose program one tenant's call starts, as far as its first read,
// and another's resumes.
type unguardedTool struct {
	guest  *Tool
	module *engine.Module
}

func newUnguardedTool(t *testing.T, guest *Tool) unguardedTool {
	t.Helper()
	module, err := guest.prepared(t.Context())
	require.NoError(t, err)
	return unguardedTool{guest, module}
}

// written is what a call wrote.
type written struct{ output, log string }

// told is what the output says before the tenant's input.
func (w written) told(t *testing.T, who string) string {
	t.Helper()
	text, ok := strings.CutSuffix(w.output, " "+inputOf(who))
	require.True(t, ok, w.output)
	return text
}

// system is what a tenant's call sees. It is the same each time, with clocks and random
// bytes that belong to the tenant, so that a program comes to the same in two starts.
func (u unguardedTool) system(t *testing.T, who string) *wasi.System {
	t.Helper()
	r := &run{tool: u.guest, invocation: invocationOf(t, who)}
	arguments, err := manifests.ExpandArgs(u.guest.manifest.Module.Args, r.invocation.Arguments)
	require.NoError(t, err)
	view, err := u.guest.runtime.files.Open(t.Context(), u.guest.permit.mounts, r.invocation.Context, files.Limits{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, view.Close()) })
	require.NoError(t, r.prepare(arguments, view))
	now := changed(who)
	r.system.Started = now
	r.system.Now = func() time.Time {
		now = now.Add(time.Millisecond)
		return now
	}
	r.system.Random = rand.NewChaCha8(sha256.Sum256([]byte(who)))
	return &r.system
}

// fresh makes a tenant's call from the beginning.
func (u unguardedTool) fresh(t *testing.T, who string) written {
	t.Helper()
	system := u.system(t, who)
	_, err := u.module.Run(wasi.With(t.Context(), system), engine.Run{Function: startFunction, MemoryLimit: int64(u.guest.limits.Memory)})
	return wrote(t, system, err)
}

// start starts the program with all that a tenant's call sees.
func (u unguardedTool) start(t *testing.T, who string) (*engine.Program, error) {
	t.Helper()
	return u.module.Start(t.Context(), engine.Start{
		MemoryLimit: int64(u.guest.limits.Memory), Timeout: u.guest.limits.Timeout, Fuel: startFuel,
		Context: func(ctx context.Context) context.Context { return wasi.With(ctx, u.system(t, who)) },
	})
}

// resume makes a tenant's call from where the program was started.
func (u unguardedTool) resume(t *testing.T, started *engine.Program, who string) written {
	t.Helper()
	system := u.system(t, who)
	_, err := started.Run(wasi.With(t.Context(), system), engine.Run{})
	return wrote(t, system, err)
}

func wrote(t *testing.T, system *wasi.System, err error) written {
	t.Helper()
	var exit *wasi.ExitError
	if errors.As(err, &exit) && exit.Code == 0 {
		err = nil
	}
	require.NoError(t, err)
	return written{string(system.Stdout.Bytes), string(system.Stderr.Bytes)}
}
