package runtime

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

const everything = `module: {path: guest.wasm}
permissions:
  network: [{host: api.example.com, methods: [GET, POST]}]
  files: [{path: /project, access: read-write}]
  secrets: [{name: KEY, header: X-Key, host: api.example.com}]
  env: [LANG]
  tools: [other]
context: [project_id]
`

func identityOf(t *testing.T, r *Runtime, m *manifests.Manifest, grants manifests.Grants) string {
	t.Helper()
	identity, err := load(t, r, m, grants).Identity(t.Context())
	require.NoError(t, err)
	assert.Regexp(t, "^[0-9a-f]{64}$", identity)
	return identity
}

// granted gives all that everything asks for. Change may make it another grant.
func granted(dir string, change func(*manifests.Grants)) manifests.Grants {
	b := manifests.Binding{Origin: "caisson.yaml:3"}
	g := manifests.Grants{
		Network: []manifests.NetworkGrant{{Binding: b, NetworkPermission: manifests.NetworkPermission{Host: "*.example.com", Methods: []string{"GET"}, Schemes: []string{"https"}, Paths: []string{"/"}}}},
		Files:   []manifests.FileGrant{{Binding: b, Path: "/project", Host: dir, Access: manifests.ReadWrite}},
		Secrets: []manifests.SecretGrant{{Binding: b, Name: "KEY", Host: "api.example.com", From: manifests.SecretSource{Env: "KEY"}}},
		Env:     []manifests.EnvGrant{{Binding: b, Name: "LANG", Value: "C"}},
		Calls:   []manifests.CallGrant{{Binding: b, Tool: "other"}},
		Context: []manifests.ContextGrant{{Binding: b, Name: "project_id"}},
	}
	if change != nil {
		change(&g)
	}
	return g
}

func withKey(name string) (string, bool) { return "a value of some length", name != "" }

// TestIdentityIsOfWhatIsPermitted: an approval must not pass to calls that can do something else, so
// that every part of it makes another identity.
func TestIdentityIsOfWhatIsPermitted(t *testing.T) {
	options := Options{LookupEnv: withKey}
	r := newRuntime(t, options)
	dir, m := t.TempDir(), manifest(t, netprobe, everything)
	want := identityOf(t, r, m, granted(dir, nil))
	seen := map[string]string{want: "the first"}
	differs := func(name, identity string) {
		assert.Empty(t, seen[identity], name)
		seen[identity] = name
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "below"), 0o700))
	for name, change := range map[string]func(*manifests.Grants){
		"another folder":     func(g *manifests.Grants) { g.Files[0].Host = filepath.Join(dir, "below") },
		"a folder of a call": func(g *manifests.Grants) { g.Files[0].Host = filepath.Join(dir, "{project_id}") },
		"less of a folder":   func(g *manifests.Grants) { g.Files[0].Access = manifests.Read },
		"a quota":            func(g *manifests.Grants) { g.Files[0].Quota.Bytes = 1 << 20 },
		"no folder":          func(g *manifests.Grants) { g.Files = nil },
		"one host":           func(g *manifests.Grants) { g.Network[0].Host = "api.example.com" },
		"another method":     func(g *manifests.Grants) { g.Network[0].Methods = []string{"POST"} },
		"another address":    func(g *manifests.Grants) { g.Network[0].Connect = "127.0.0.1:8443" },
		"more paths": func(g *manifests.Grants) {
			g.Network = append(g.Network, g.Network[0])
			g.Network[1].Paths = []string{"/v1"}
		},
		"no network": func(g *manifests.Grants) { g.Network = nil },
		"a profile":  func(g *manifests.Grants) { g.NoNetwork = "strict" },
		"a denial of hosts": func(g *manifests.Grants) {
			g.Deny = []manifests.Deny{{Network: &manifests.NetworkDeny{Paths: []string{"/admin"}}}}
		},
		"another secret":   func(g *manifests.Grants) { g.Secrets[0].From.Env = "OTHER" },
		"no secret":        func(g *manifests.Grants) { g.Secrets = nil },
		"another variable": func(g *manifests.Grants) { g.Env[0].Value = "de" },
		"a byte":           func(g *manifests.Grants) { g.Env[0].Value = "\xfe" },
		"another byte":     func(g *manifests.Grants) { g.Env[0].Value = "\xff" },
		"no variable":      func(g *manifests.Grants) { g.Deny = []manifests.Deny{{Env: "LANG"}} },
		"no calls":         func(g *manifests.Grants) { g.Calls = nil },
		"no context":       func(g *manifests.Grants) { g.Context = nil },
		"a short secret":   func(g *manifests.Grants) { g.Secrets[0].Force = true },
	} {
		differs(name, identityOf(t, r, m, granted(dir, change)))
	}
	options.Limits.Timeout = time.Second
	differs("a limit", identityOf(t, newRuntime(t, options), m, granted(dir, nil)))
	differs("another module", identityOf(t, r, manifest(t, callprobe, everything), granted(dir, nil)))
	for name, more := range map[string]string{
		"arguments of the program": "module: {path: guest.wasm, args: [a]}\n",
		"its input":                "module: {path: guest.wasm, stdin: none}\n",
		"its output":               "module: {path: guest.wasm, stdout: text}\n",
		"a parameter":              "parameters: {properties: {a: {type: string}}}\n",
		"that it is destructive":   destructive,
		"a limit of its own":       "limits: {memory: 16MiB}\n",
		"a type":                   "type: custom\nparameters: {properties: {a: {type: string}}, required: [a]}\n",
	} {
		text := everything
		if more[:6] == "module" {
			text = everything[len("module: {path: guest.wasm}\n"):]
		}
		differs(name, identityOf(t, r, manifest(t, netprobe, more+text), granted(dir, nil)))
	}
}

// TestIdentityIsTheSameForTheSame: an approval that lasts must not end with what makes no difference.
func TestIdentityIsTheSameForTheSame(t *testing.T) {
	options := Options{LookupEnv: withKey}
	r := newRuntime(t, options)
	dir, m := t.TempDir(), manifest(t, netprobe, everything)
	want := identityOf(t, r, m, granted(dir, nil))
	assert.Equal(t, want, identityOf(t, newRuntime(t, options), m, granted(dir, nil)), "in another runtime, as in another process")
	digest, err := moduleDigest(m)
	require.NoError(t, err)
	for name, change := range map[string]func(*manifests.Grants){
		"another line": func(g *manifests.Grants) {
			g.Network[0].Origin, g.Files[0].Origin, g.Env[0].Origin = "x:1", "x:2", "x:3"
		},
		"bound to this module": func(g *manifests.Grants) { g.Network[0].SHA256, g.Secrets[0].SHA256 = digest.String(), digest.String() },
		"more for another module": func(g *manifests.Grants) {
			g.Network = append(g.Network, manifests.NetworkGrant{Binding: manifests.Binding{SHA256: "ab"}, NetworkPermission: manifests.NetworkPermission{Host: "*"}})
		},
		"what it does not ask for":    func(g *manifests.Grants) { g.Env = append(g.Env, manifests.EnvGrant{Name: "HOME", Value: "/"}) },
		"a grant that stands twice":   func(g *manifests.Grants) { g.Network = append(g.Network, g.Network[0]) },
		"an approval":                 func(g *manifests.Grants) { g.Approved = approvedBy("caisson.yaml:1", "") },
		"that each call is asked for": func(g *manifests.Grants) { g.Ask = []string{"caisson.yaml:1"} },
	} {
		assert.Equal(t, want, identityOf(t, r, m, granted(dir, change)), name)
	}
	wide := func(change func(*manifests.Grants)) string {
		return identityOf(t, r, m, granted(dir, func(g *manifests.Grants) {
			n, s := &g.Network[0], &g.Secrets[0]
			n.Methods, n.Schemes, n.Ports, n.Paths, n.Connect = []string{"GET", "POST"}, []string{"http", "https"}, []int{80, 443}, []string{"/a", "/b"}, "127.0.0.1:8443"
			n.Addresses = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
			s.Schemes, s.Ports = []string{"http", "https"}, []int{80, 443}
			g.Deny = []manifests.Deny{{Network: &manifests.NetworkDeny{Host: "a.example.com", Methods: []string{"GET", "POST"}}}}
			change(g)
		}))
	}
	assert.Equal(t, wide(func(*manifests.Grants) {}), wide(func(g *manifests.Grants) {
		n, s, d := &g.Network[0], &g.Secrets[0], g.Deny[0].Network
		for _, list := range [][]string{n.Methods, n.Schemes, n.Paths, s.Schemes, d.Methods} {
			slices.Reverse(list)
		}
		for _, list := range [][]int{n.Ports, s.Ports} {
			slices.Reverse(list)
		}
		slices.Reverse(n.Addresses)
		n.Methods = append(n.Methods, "GET")
		n.Host, s.Host, d.Host, n.Connect = "*.EXAMPLE.com", "API.example.com", "A.example.com", "[::ffff:127.0.0.1]:8443"
	}), "the same rules in another spelling and order")

	described := manifest(t, netprobe, everything+"label: Probe\nversion: 2.0.0\ncategory: tests\naliases: [probe]\ntests: [{name: a, expect: {success: true}}]\n")
	assert.Equal(t, want, identityOf(t, r, described, granted(dir, nil)), "texts for people and models")

	careful := granted(dir, func(g *manifests.Grants) { g.NoWrites = "careful" })
	assert.Equal(t, identityOf(t, r, m, granted(dir, func(g *manifests.Grants) { g.NoWrites = "strict" })), identityOf(t, r, m, careful), "a profile's name")

	t.Chdir(filepath.Dir(dir))
	assert.Equal(t, want, identityOf(t, r, m, granted(filepath.Base(dir), nil)), "a relative folder is the one that it leads to")
	two := granted(dir, func(g *manifests.Grants) {
		g.Network = append(g.Network, g.Network[0])
		g.Network[1].Host = "api.example.com"
	})
	first := identityOf(t, r, m, two)
	two.Network[0], two.Network[1] = two.Network[1], two.Network[0]
	assert.Equal(t, first, identityOf(t, r, m, two), "in another order")
}
