package runtime

import (
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/permit"
	"github.com/caisson-run/caisson/tool"
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
		Files:   []manifests.FileGrant{{Binding: b, Path: permission.NewGuestPath("/project"), Host: permission.NewHostTemplate(dir), Access: manifests.AccessReadWrite}},
		Secrets: []manifests.SecretGrant{{Binding: b, Name: "KEY", Host: "api.example.com", From: manifests.SecretSource{Env: "KEY"}}},
		Env:     []manifests.EnvGrant{{Binding: b, Name: "LANG", Value: "C"}},
		Calls:   []manifests.NameGrant{{Binding: b, Name: "other"}},
		Context: []manifests.NameGrant{{Binding: b, Name: "project_id"}},
	}
	if change != nil {
		change(&g)
	}
	return g
}

func withKey(name string) (string, bool) { return "a value of some length", name != "" }

// TestIdentityIsOfWhatIsPermitted: an approval must not pass to calls that can do something else, so
// that every part of it makes another identity. [TestEachTermMakesAnotherIdentity] changes each field.
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
		"another folder": func(g *manifests.Grants) { g.Files[0].Host = permission.NewHostTemplate(filepath.Join(dir, "below")) },
		"a folder of a call": func(g *manifests.Grants) {
			g.Files[0].Host = permission.NewHostTemplate(filepath.Join(dir, "{project_id}"))
		},
		"no folder": func(g *manifests.Grants) { g.Files = nil },
		"more paths": func(g *manifests.Grants) {
			g.Network = append(g.Network, g.Network[0])
			g.Network[1].Paths = []string{"/v1"}
		},
		"no network": func(g *manifests.Grants) { g.Network = nil },
		"a profile":  func(g *manifests.Grants) { g.NoNetwork = "strict" },
		"a denial of hosts": func(g *manifests.Grants) {
			g.Deny = []manifests.Deny{{Network: &manifests.NetworkDeny{Paths: []string{"/admin"}}}}
		},
		"no secret":    func(g *manifests.Grants) { g.Secrets = nil },
		"a byte":       func(g *manifests.Grants) { g.Env[0].Value = "\xfe" },
		"another byte": func(g *manifests.Grants) { g.Env[0].Value = "\xff" },
		"no variable":  func(g *manifests.Grants) { g.Deny = []manifests.Deny{{Env: "LANG"}} },
		"no calls":     func(g *manifests.Grants) { g.Calls = nil },
		"no context":   func(g *manifests.Grants) { g.Context = nil },
	} {
		differs(name, identityOf(t, r, m, granted(dir, change)))
	}
	options.Limits.Timeout = time.Second
	differs("a limit", identityOf(t, newRuntime(t, options), m, granted(dir, nil)))
	differs("another module", identityOf(t, r, manifest(t, callprobe, everything), granted(dir, nil)))
	for name, more := range map[string]string{
		"arguments of the program": "module: {path: guest.wasm, args: [a]}\n",
		"a parameter":              "parameters: {properties: {a: {type: string}}}\n",
		"that it is destructive":   destructive,
		"a type":                   "type: custom\nparameters: {properties: {a: {type: string}}, required: [a]}\n",
	} {
		text := everything
		if more[:6] == "module" {
			text = everything[len("module: {path: guest.wasm}\n"):]
		}
		differs(name, identityOf(t, r, manifest(t, netprobe, more+text), granted(dir, nil)))
	}
}

// TestIdentityIsTheSameForTheSame: a lasting approval must not end with an irrelevant change.
func TestIdentityIsTheSameForTheSame(t *testing.T) {
	options := Options{LookupEnv: withKey}
	r := newRuntime(t, options)
	dir, m := t.TempDir(), manifest(t, netprobe, everything)
	want := identityOf(t, r, m, granted(dir, nil))
	assert.Equal(t, want, identityOf(t, newRuntime(t, options), m, granted(dir, nil)), "in another runtime, as in another process")
	digest := digestOf(t, m)
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

// terms in full: each list has an element, and no field is zero.
type fullTerms struct {
	Manifest manifests.Manifest
	Grants   manifests.Grants
	Limits   Limits
}

// full returns new terms with every possible request, grant and denial.
func full(t *testing.T, dir string) *fullTerms {
	t.Helper()
	template, err := modules.ParseArgTemplate("{a}")
	require.NoError(t, err)
	b := manifests.Binding{Origin: "caisson.yaml:3", SHA256: testModule}
	requests := manifests.NetworkPermission{Host: "api.example.com", Ports: []int{443}, Methods: []string{"GET"}, Schemes: []string{"https"}, Paths: []string{"/v1"}}
	inHeader, inQuery := manifests.SecretPlace{Header: "X-Key"}, manifests.SecretPlace{Query: "q"}
	return &fullTerms{
		Manifest: manifests.Manifest{
			File: "tool.yaml", Name: "guest", Label: "a", Description: "b", Version: "1.0.0", Category: "c",
			Module: modules.Module{Language: "python", Packages: []string{"lib"}, Libraries: map[string]string{"lib": "lib.wasm"}, Sample: json.RawMessage(`{"a":1}`),
				Path: "guest.wasm", SHA256: testModule, ABI: modules.ABIWASI, Entry: "call", Config: map[string]string{"a": "b"}, Variables: 64, Args: []modules.ArgTemplate{template},
				Stdin: modules.Stdin{Mode: modules.StdinParam, Param: "a"}, Stdout: modules.StdoutText, Stderr: modules.StderrPrivate, SuccessCodes: []int{1},
			},
			ParameterAliases: []manifests.ParameterAlias{{Name: "b", Parameter: "a", Values: []manifests.AliasValue{{Written: "true", Means: json.RawMessage(`1`)}}}},
			ModelParameters:  json.RawMessage(`{}`), Format: json.RawMessage(`{}`),
			Permissions: manifests.Permissions{
				Files:   []manifests.FilePermission{{Path: permission.NewGuestPath("/project"), Access: manifests.AccessReadWrite}, {Path: permission.NewGuestPath("/data"), Access: manifests.AccessRead}},
				Network: []manifests.NetworkPermission{requests},
				Secrets: []manifests.SecretPermission{{Name: "KEY", Place: manifests.SecretPlace{Header: "X-Key", Prefix: "Bearer ", Query: "q", Body: "b"}, Host: "api.example.com"}, {Name: "KEY", Place: inHeader, Host: "file.example.com"}, {Name: "KEY", Place: inHeader, Host: "age.example.com"}},
				Env:     []string{"LANG"}, KV: &manifests.KVPermission{Bytes: 1}, Tools: []string{"other"}, Functions: []string{"lookup"}, LLM: &manifests.LLMPermission{Tokens: 1},
			},
			Context: []string{"project_id"}, Requires: []string{"KEY"}, Aliases: []string{"g"}, Retired: []string{"h"}, Summary: "s", Execution: manifests.ExecutionSandbox, Type: tool.FunctionCall,
			Behavior: manifests.Behavior{ReadOnly: true, Idempotent: true, Destructive: true, Cache: time.Second, Final: true, Hidden: true, Snapshot: manifests.SnapshotAuto, Profile: "a"},
			Limits:   manifests.Limits{Memory: 1, Timeout: 1, Fuel: 1, Output: 1, Stderr: 1, HTTPCalls: 1, HTTPBytes: 1, OpenFiles: 1, DiskBytes: 1},
		},
		Grants: manifests.Grants{
			Files: []manifests.FileGrant{{Binding: b, Path: permission.NewGuestPath("/project"), Host: permission.NewHostTemplate(dir), Access: manifests.AccessReadWrite, Quota: manifests.Quota{Bytes: 1 << 20, Files: 10}}, {Binding: b, Path: permission.NewGuestPath("/data"), Host: permission.NewHostTemplate(dir)}},
			Network: []manifests.NetworkGrant{{
				Binding: b, NetworkPermission: requests, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Connect: "127.0.0.1:8443",
				Authorities: filepath.Join(dir, "authorities"),
			}},
			Secrets: []manifests.SecretGrant{
				{
					Binding: b, Name: "KEY", Host: "api.example.com", Ports: []int{443}, Schemes: []string{"https"}, From: manifests.SecretSource{Env: "KEY"}, Force: true,
					Place: manifests.SecretPlace{Header: "X-Key", Prefix: "Bearer ", Query: "q", Body: "b"},
				},
				// Sources that are not read, since the manifest asks for another place.
				{Binding: b, Name: "KEY", Host: "file.example.com", Place: inQuery, From: manifests.SecretSource{File: "f"}},
				{Binding: b, Name: "KEY", Host: "age.example.com", Place: inQuery, From: manifests.SecretSource{Age: "a", Identity: "i", Key: "K"}},
			},
			Context: []manifests.NameGrant{{Binding: b, Name: "project_id"}}, Env: []manifests.EnvGrant{{Binding: b, Name: "LANG", Value: "C"}},
			Calls: []manifests.NameGrant{{Binding: b, Name: "other"}}, Functions: []manifests.NameGrant{{Binding: b, Name: "lookup"}}, Approved: []manifests.Binding{b}, Ask: []string{"caisson.yaml:9"},
			Deny: []manifests.Deny{
				{Origin: "d", Network: &manifests.NetworkDeny{
					Host: "api.example.com", Ports: []int{443}, Methods: []string{"GET"}, Schemes: []string{"https"}, Paths: []string{"/v1/admin"},
					Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")},
				}},
				{Origin: "d", Secret: "KEY2"}, {Origin: "d", Context: "project_id2"}, {Origin: "d", Env: "LANG2"}, {Origin: "d", Call: "other2"}, {Origin: "d", Function: "lookup2"},
				{Origin: "d", Files: manifests.DenyDirectory("/data", manifests.AccessReadWrite)},
			},
		},
		Limits: Limits{Timeout: 1, Memory: 1, Output: 1, Stderr: 1, OpenFiles: 1, DiskBytes: 1, HTTPCalls: 1, HTTPBytes: 1, Fuel: 1},
	}
}

const testModule = "abababababababababababababababababababababababababababababababab"

// noDifference are the fields on which an approval does not depend, with all below them, each with the
// reason.
var noDifference = map[string]string{
	"Manifest.File":          "where it is written",
	"Manifest.Module.Path":   "the module's digest is part of the identity, in addition to the terms",
	"Manifest.Module.SHA256": "the same", "Manifest.Module.Language": "the same", "Manifest.Module.Packages": "the same", "Manifest.Module.Sample": "the same", "Manifest.Module.Libraries": "the same",
	"Manifest.Label": "for people", "Manifest.Description": "for models", "Manifest.Version": "for people", "Manifest.Category": "for people",
	"Manifest.Aliases":    "names are resolved before",
	"Manifest.Retired":    "calls by them do not run",
	"Manifest.Summary":    "it is for people who choose tools",
	"Manifest.Requires":   "without it no call runs",
	"Manifest.Limits":     "the limits that hold are part of it",
	"Manifest.Format":     "for models: their texts are arguments, and part of the approved call",
	"Grants.Approved":     "an approval is not part of the approved terms",
	"Grants.Ask":          "a question is not, either",
	"Grants.RecordInputs": "what is recorded of a call is no ability of it",
}

func isExcused(path string) bool {
	for field := range noDifference {
		if path == field || strings.HasPrefix(path, field+".") || strings.HasPrefix(path, field+"[") {
			return true
		}
	}
	return strings.HasSuffix(path, ".Origin") // where it is written
}

// TestEachTermMakesAnotherIdentity: whether approvals depend on a field is decided here when the
// field is added to a manifest, a grant or a denial. One field at a time is changed, in a tool that
// sets all of them.
func TestEachTermMakesAnotherIdentity(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(dir+"x", 0o700))
	t.Cleanup(func() { assert.NoError(t, os.Remove(dir+"x")) })
	server := httptest.NewTLSServer(nil)
	server.Close()
	for _, name := range []string{"authorities", "authoritiesx"} {
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	digest := func(f *fullTerms) ([sha256.Size]byte, error) {
		p, err := permit.New(permit.Options{Manifest: &f.Manifest, Grants: f.Grants, Module: testModule, LookupEnv: withKey})
		if err != nil {
			return [sha256.Size]byte{}, err
		}
		sum, err := p.TermsDigest(manifests.Limits(f.Limits))
		return sum, errors.Join(err, p.Close())
	}
	want, err := digest(full(t, dir))
	require.NoError(t, err)
	again, err := digest(full(t, dir))
	require.NoError(t, err)
	require.Equal(t, want, again)
	cannotBeLoaded := 0
	paths := slices.Sorted(maps.Keys(leaves(reflect.ValueOf(full(t, dir)).Elem(), "")))
	require.Greater(t, len(paths), 100)
	for _, path := range paths {
		f := full(t, dir)
		alter(t, leaves(reflect.ValueOf(f).Elem(), "")[path], path)
		got, err := digest(f)
		switch {
		case err != nil:
			cannotBeLoaded++
			t.Logf("%s: %v", path, err)
		case isExcused(path):
			assert.Equal(t, want, got, "%s makes a difference, and is said to make none", path)
		default:
			assert.NotEqual(t, want, got, "%s was changed, and an earlier approval still holds", path)
		}
	}
	assert.Zero(t, cannotBeLoaded, "a field is changed to a value that no manifest can have: teach alter")
}

// TestFullTermsAreFull: a field that full does not set is never changed.
func TestFullTermsAreFull(t *testing.T) {
	set := map[string]bool{}
	fields(reflect.ValueOf(full(t, t.TempDir())).Elem(), set)
	for name, is := range set {
		_, unset := map[string]bool{
			"Manifest.Parameters": true, "Manifest.Result": true, // are made of members that the identity has, or that are for models
			"Manifest.Deprecated": true, "Manifest.Tests": true, // say nothing about calls
			"Grants.NoNetwork": true, "Grants.NoWrites": true, "Grants.RecordInputs": true, // are changed from nothing
		}[name]
		assert.NotEqual(t, is, unset, name)
	}
}

// fields notes of each field of a struct, by its type's name and its own, whether it is set anywhere.
func fields(v reflect.Value, set map[string]bool) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				name := v.Type().Name() + "." + field.Name
				set[name] = set[name] || !v.Field(i).IsZero()
				fields(v.Field(i), set)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			fields(v.Index(i), set)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			fields(v.Elem(), set)
		}
	}
}

// leaves returns the fields that are set and have no fields themselves, by their paths.
func leaves(v reflect.Value, path string) map[string]reflect.Value {
	all := map[string]reflect.Value{}
	switch {
	case v.Type() == reflect.TypeFor[netip.Prefix](), v.Type() == reflect.TypeFor[json.RawMessage](), v.Type() == reflect.TypeFor[modules.ArgTemplate]():
		all[path] = v
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				maps.Copy(all, leaves(v.Field(i), strings.TrimPrefix(path+"."+field.Name, ".")))
			}
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			maps.Copy(all, leaves(v.Index(i), fmt.Sprintf("%s[%d]", path, i)))
		}
	case v.Kind() == reflect.Pointer && !v.IsNil():
		maps.Copy(all, leaves(v.Elem(), path))
	case v.Kind() == reflect.Pointer:
	case !v.IsZero() || path == "Grants.NoNetwork" || path == "Grants.NoWrites":
		all[path] = v // an unset field is set in another element of its list
	}
	return all
}

// alter changes a leaf to something that can be written in its place, where that is known.
func alter(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	changed := map[string]string{
		"read-write": "read", "https": "http", "wasi": "extism", "127.0.0.1:8443": "127.0.0.1:8444", "/v1": "/v1/x", "/v1/admin": "/v1/root", "/data": "/project", "read": "read-write",
		"KEY2": "KEY", "project_id2": "project_id", "LANG2": "LANG", "other2": "other", "lookup2": "lookup",
		"sandbox": "client", "function": "custom", "auto": "off", "param": "none", "text": "json",
	}
	switch v.Kind() {
	case reflect.String:
		if other, known := changed[v.String()]; known {
			v.SetString(other)
		} else {
			v.SetString(v.String() + "x")
		}
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	default:
		switch v.Interface().(type) {
		case map[string]string:
			v.Set(reflect.ValueOf(map[string]string{"a": "c"}))
		case json.RawMessage:
			v.Set(reflect.ValueOf(json.RawMessage(`{"a":1}`)))
		case netip.Prefix:
			v.Set(reflect.ValueOf(netip.MustParsePrefix("172.16.0.0/12")))
		case modules.ArgTemplate:
			other, err := modules.ParseArgTemplate("{b}")
			require.NoError(t, err)
			v.Set(reflect.ValueOf(other))
		default:
			t.Fatalf("%s: no other %s is known", path, v.Type())
		}
	}
}
