package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

const destructive = "behavior: {destructive: true}\n"

func approvedBy(origin, sha256 string) []manifests.Binding {
	return []manifests.Binding{manifests.Binding{Origin: origin, SHA256: sha256}}
}

func TestAsks(t *testing.T) {
	r := newRuntime(t, Options{})
	for name, c := range map[string]struct {
		asks   string
		grants manifests.Grants
		want   string
	}{
		"harmless":                      {},
		"destructive":                   {asks: destructive, want: "the tool says that it is destructive"},
		"destructive and approved":      {asks: destructive, grants: manifests.Grants{Approved: approvedBy("caisson.yaml:3", "")}},
		"asked for":                     {grants: manifests.Grants{Ask: []string{"caisson.yaml:14", "--ask *"}}, want: "caisson.yaml:14 asks for approval of each call"},
		"asked for by somebody":         {grants: manifests.Grants{Ask: []string{""}}, want: "the operator asks for approval of each call"},
		"asked for, although read-only": {asks: "behavior: {read_only: true}\n", grants: manifests.Grants{Ask: []string{"--ask g*"}}, want: "--ask g* asks for approval of each call"},
		"approved without need":         {grants: manifests.Grants{Approved: approvedBy("caisson.yaml:3", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, load(t, r, manifest(t, probe, c.asks), c.grants).Asks())
		})
	}
}

// TestCallsThatCanOnlyBeDeniedDoNotAsk: a destructive tool to which no requested permission is granted can destroy
// nothing. The controls get a permission, request none, or are asked about by the operator.
func TestCallsThatCanOnlyBeDeniedDoNotAsk(t *testing.T) {
	r := newRuntime(t, Options{})
	wants := manifest(t, netprobe, destructive+"permissions: {files: [{path: /project, access: read-write}], network: [{host: a.example}]}\n")
	folder := []manifests.FileGrant{manifests.GrantDirectory("/project", t.TempDir(), manifests.AccessReadWrite)}
	const asks = "the tool says that it is destructive"
	assert.Empty(t, load(t, r, wants, manifests.Grants{}).Asks())
	assert.Empty(t, load(t, r, wants, manifests.Grants{Files: folder, Deny: []manifests.Deny{{Files: manifests.DenyDirectory("/", "")}}}).Asks())
	assert.Equal(t, asks, load(t, r, wants, manifests.Grants{Files: folder}).Asks())
	assert.Equal(t, asks, load(t, r, manifest(t, probe, destructive), manifests.Grants{}).Asks())
	assert.Equal(t, "the operator asks for approval of each call", load(t, r, wants, manifests.Grants{Ask: []string{""}}).Asks())
}

// TestAttackAskBeatsApprove: no approval, bound to the module or not, takes back what the operator asks for. The
// control has only the approval.
func TestAttackAskBeatsApprove(t *testing.T) {
	r := newRuntime(t, Options{})
	m := manifest(t, probe, destructive)
	digest := digestOf(t, m)
	for _, sha256 := range []string{"", digest.String()} {
		approved := approvedBy("--approve-tool guest", sha256)
		require.Empty(t, load(t, r, m, manifests.Grants{Approved: approved}).Asks())
		assert.Equal(t, "caisson.yaml:14 asks for approval of each call", load(t, r, m, manifests.Grants{Approved: approved, Ask: []string{"caisson.yaml:14"}}).Asks())
	}
}

// TestAttackApprovalOfOneModuleIsNotAnothers: a tool whose module was replaced after it was
// approved asks again. The control is the module itself.
func TestAttackApprovalOfOneModuleIsNotAnothers(t *testing.T) {
	r := newRuntime(t, Options{})
	m := manifest(t, probe, destructive)
	digest := digestOf(t, m)
	approved := manifests.Grants{Approved: approvedBy("caisson.yaml:9", digest.String())}
	require.Empty(t, load(t, r, m, approved).Asks())

	other := manifest(t, netprobe, destructive)
	otherDigest := digestOf(t, other)
	assert.Equal(t, "the tool says that it is destructive; the approval of caisson.yaml:9 is for the module with sha256 "+
		digest.String()+" and not for this one, which has "+otherDigest.String(), load(t, r, other, approved).Asks())

	absent := manifestIn(t, t.TempDir(), "guest", destructive)
	assert.Contains(t, load(t, r, absent, approved).Asks(), "not for this one, which cannot be read")

	both := manifests.Grants{Approved: append(approvedBy("caisson.yaml:9", digest.String()), approvedBy("caisson.yaml:12", otherDigest.String())...)}
	assert.Empty(t, load(t, r, other, both).Asks(), "one of two is for this one")
}

// TestAttackModuleIsReplacedOnceItWasApproved: only the approved module runs, or none does. The control is the tool
// without an approval and before its identity is read: it runs the replacement.
func TestAttackModuleIsReplacedOnceItWasApproved(t *testing.T) {
	r := newRuntime(t, Options{})
	swap := func(m *manifests.Manifest) {
		source := readGuest(t, netprobe)
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(m.File), m.Module.Path), source, 0o600))
	}
	asksNetwork := destructive + "permissions: {network: [{host: a.example}], secrets: [{name: A, header: A, host: a.example}]}"
	control := manifest(t, probe, asksNetwork)
	loaded := load(t, r, control, manifests.Grants{})
	swap(control)
	require.NoError(t, loaded.Prepare(t.Context()))

	bound := manifest(t, probe, asksNetwork)
	digest := digestOf(t, bound)
	loaded = load(t, r, bound, manifests.Grants{Approved: approvedBy("", digest.String())})
	require.Empty(t, loaded.Asks())
	swap(bound)
	require.ErrorIs(t, loaded.Prepare(t.Context()), ErrDigest)

	// The same holds after a caller has read its identity to approve a call.
	identified := manifest(t, probe, asksNetwork)
	loaded = load(t, r, identified, manifests.Grants{})
	before, err := loaded.Identity(t.Context())
	require.NoError(t, err)
	swap(identified)
	after, err := loaded.Identity(t.Context())
	require.NoError(t, err)
	assert.Equal(t, before, after)
	require.ErrorIs(t, loaded.Prepare(t.Context()), ErrDigest)
}

// TestIdentityIsOfTheModuleThatRuns: many ask at once, while the file changes.
func TestIdentityIsOfTheModuleThatRuns(t *testing.T) {
	r := newRuntime(t, Options{})
	m := manifest(t, probe, "")
	file := filepath.Join(filepath.Dir(m.File), m.Module.Path)
	one, err := os.ReadFile(file)
	require.NoError(t, err)
	two := append(append([]byte{}, one...), 0, 2, 1, 'x') // a custom section more
	for range 10 {
		loaded := load(t, r, m, manifests.Grants{})
		var group sync.WaitGroup
		var mu sync.Mutex
		found := map[string]bool{}
		for i := range 8 {
			group.Go(func() {
				source := one
				if i%2 == 0 {
					source = two
				}
				replace(t, file, source)
				identity, err := loaded.Identity(t.Context())
				if err != nil {
					assert.ErrorIs(t, err, ErrDigest)
					return
				}
				mu.Lock()
				found[identity] = true
				mu.Unlock()
			})
		}
		group.Wait()
		assert.Len(t, found, 1)
	}
}

// replace puts a file in the place of another in one step.
func replace(t *testing.T, file string, source []byte) {
	t.Helper()
	next, err := os.CreateTemp(filepath.Dir(file), "next")
	if !assert.NoError(t, err) {
		return
	}
	_, err = next.Write(source)
	assert.NoError(t, err)
	assert.NoError(t, next.Close())
	assert.NoError(t, os.Rename(next.Name(), file))
}

func TestIdentityFailsWithTheModule(t *testing.T) {
	r := newRuntime(t, Options{})
	m := manifestIn(t, t.TempDir(), "guest", "")
	_, err := load(t, r, m, manifests.Grants{}).Identity(t.Context())
	require.ErrorIs(t, err, ErrModule)
	pinned := manifest(t, probe, "module: {path: guest.wasm, sha256: "+strings.Repeat("ab", 32)+"}")
	_, err = load(t, r, pinned, manifests.Grants{}).Identity(t.Context())
	require.ErrorIs(t, err, ErrDigest)
}
