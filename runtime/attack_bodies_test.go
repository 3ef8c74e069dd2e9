package runtime

import (
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/network"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/abi"
	"github.com/caisson-run/caisson/tool"
)

// TestAttackRefusedBodies: scripts and plug-ins announce long bodies of requests that they may not send, for which the
// host takes no memory. A plug-in's denial is in the record. The control is a request that is granted.
func TestAttackRefusedBodies(t *testing.T) {
	const body = 32 << 20
	r := newRuntime(t, Options{})
	loaded := func(host, limit string, grants ...string) *Tool {
		var granted manifests.Grants
		for _, host := range grants {
			granted.Network = append(granted.Network, manifests.NetworkGrant{
				NetworkPermission: manifests.NetworkPermission{Host: host},
			})
		}
		text := "permissions: {network: [{host: " + host + "}]}\nlimits: {http_bytes: " + limit + "}"
		return load(t, r, manifest(t, netprobe, text), granted)
	}
	tools := map[string]*Tool{
		"nothing":      load(t, r, manifest(t, netprobe, "limits: {http_bytes: 256MiB}"), manifests.Grants{}),
		"no grant":     loaded("api.example.com", "256MiB"),
		"another host": loaded("other.example.com", "256MiB", "api.example.com"),
		"few bytes":    loaded("api.example.com", "31MiB", "api.example.com"),
		"control":      loaded("api.example.com", "256MiB", "api.example.com"),
	}
	request := []byte(`{"method":"GET","url":"https://api.example.com/","headers":[]}`)
	for name, guest := range tools {
		t.Run(name, func(t *testing.T) {
			granted := name == "control"
			run := guest.newRun(tool.Invocation{})
			run.prepareHost()
			defer run.host.close()
			ctx, devices := abi.With(t.Context(), &run.host.session), run.devices()
			used := allocated(func() {
				room, refused, err := devices.Begin(ctx, "caisson:net@1.request", request, body)
				require.NoError(t, err)
				assert.Equal(t, granted, refused == nil)
				assert.Equal(t, granted, cap(room) > body)
			})
			assert.Equal(t, granted, used > body/2, "a script: %d bytes", used)

			plugin := run.newPlugin(nil)
			assert.Same(t, r.work, plugin.Work)
			err := plugin.Network.Check(t.Context(), network.Request{URL: "https://api.example.com/"}, body)
			assert.Equal(t, granted, err == nil)
			if !granted && name != "few bytes" {
				require.ErrorIs(t, err, hostfuncs.ErrDenied)
				run.collect()
				assert.NotEmpty(t, run.answer.Denials)
				assert.Equal(t, "denied", run.answer.HostCalls[0].Status)
			}
		})
	}
	assert.EqualValues(t, 64<<20, tools["control"].Limits().HTTPBytes, "the most, since it comes on top of memory")
}

// allocated returns how many bytes a function allocates.
func allocated(f func()) uint64 {
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	f()
	goruntime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
