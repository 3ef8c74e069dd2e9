package caisson_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/tooltest"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// TestClock: the kind is asked for, granted, denied, enforced, recorded, bound and told of as any other.
func TestClock(t *testing.T) {
	dir := tooltest.Files(t, map[string]string{"asks/tool.yaml": header + "name: greet\npermissions: {clock: [UTC]}\n", "silent/tool.yaml": header + "name: greet\n"})
	for _, folder := range []string{"asks", "silent"} {
		require.NoError(t, guests.Build(t.Context(), "testdata/kind/guest", ".", filepath.Join(dir, folder, "greet.wasm")))
	}
	run := func(folder, policy string) (tool.Record, *caisson.Host) {
		t.Helper()
		file := filepath.Join(dir, "caisson.yaml")
		require.NoError(t, os.WriteFile(file, []byte("schema: caisson-config/v1\n"+policy), 0o600))
		host := open(t, caisson.Options{PolicyFile: file, Tools: []string{filepath.Join(dir, folder)}})
		report, err := host.Execute(t.Context(), greet)
		require.NoError(t, err)
		return report.Records[0], host
	}
	before := time.Now().UTC().Hour()
	granted, _ := run("asks", "grants: [{tools: [greet], clock: [UTC]}]\n")
	require.True(t, granted.Result.Success, granted.Result.Error)
	assert.Contains(t, []string{fmt.Sprintf(`{"hour":%d}`, before), fmt.Sprintf(`{"hour":%d}`, time.Now().UTC().Hour())}, string(granted.Result.Data))
	require.Len(t, granted.HostCalls, 1)
	assert.True(t, granted.HostCalls[0].Allowed)

	refused, _ := run("asks", "")
	assert.Equal(t, tool.Denied, refused.Result.Kind)
	require.Len(t, refused.Denials, 1)
	assert.JSONEq(t, `{"tools":["greet"],"clock":["UTC"]}`, string(refused.Denials[0].Allow.Grant))
	assert.Equal(t, "- {tools: [greet], clock: [UTC]}", manifests.PolicyLine(refused.Denials[0].Allow.Grant))

	denied, _ := run("asks", "grants: [{tools: [greet], clock: [UTC]}]\ndeny: [{clock: UTC}]\n")
	assert.Equal(t, tool.Denied, denied.Result.Kind)
	bound, _ := run("asks", "grants: [{tools: [greet], sha256: "+emptyDigest+", clock: [UTC]}]\n")
	assert.Equal(t, tool.Denied, bound.Result.Kind)
	unasked, _ := run("silent", "")
	assert.Equal(t, tool.Internal, unasked.Result.Kind, "the module is refused, of which the operator is told")

	_, host := run("asks", "grants: [{tools: [greet], clock: [UTC, GMT]}]\n")
	require.Len(t, host.Unapplied(), 1)
	assert.Equal(t, "no tool that it applies to asks for the time in GMT", host.Unapplied()[0].Text)
}

// TestClockIsPartOfTheIdentity: an approval does not pass to a tool that may know more.
func TestClockIsPartOfTheIdentity(t *testing.T) {
	rt, err := runtime.New(t.Context(), runtime.Options{})
	require.NoError(t, err)
	defer rt.Close(t.Context())
	dir := tooltest.Files(t, map[string]string{"greet.wasm": "\x00asm\x01\x00\x00\x00"})
	identity := func(asked string, zones ...string) string {
		m, err := manifests.Parse("greet.tool.yaml", []byte(header+"name: greet\npermissions: {clock: ["+asked+"]}\n"))
		require.NoError(t, err)
		m.File = filepath.Join(dir, "tool.yaml")
		var grants manifests.Grants
		for _, zone := range zones {
			grants.Clock = append(grants.Clock, manifests.NameGrant{Name: zone})
		}
		loaded, err := rt.Load(t.Context(), m, grants)
		require.NoError(t, err)
		id, err := loaded.Identity(t.Context())
		require.NoError(t, err)
		return id
	}
	one := identity("UTC, GMT", "UTC")
	assert.NotEqual(t, one, identity("UTC, GMT"))
	assert.NotEqual(t, one, identity("UTC, GMT", "GMT"))
	assert.NotEqual(t, one, identity("UTC", "UTC"))
	assert.Equal(t, one, identity("UTC, GMT", "UTC", "CET"), "what it does not ask for")
}

const emptyDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
