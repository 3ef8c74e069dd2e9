package runtime

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

// TestEveryKindOfGrantIsBoundToAModule: what is granted to one module, of any kind, is not
// another's, and the decision names the grant that it would have held by.
func TestEveryKindOfGrantIsBoundToAModule(t *testing.T) {
	r := newRuntime(t, Options{LookupEnv: func(string) (string, bool) { return "a value of some length", true }})
	m := manifest(t, netprobe, `permissions:
  network: [{host: api.example.com}]
  files: [{path: /project, access: read}]
  secrets: [{name: KEY, header: X-Key, host: api.example.com}]
  env: [LANG]
  tools: [other]
context: [project_id]`)
	digest, err := moduleDigest(m)
	require.NoError(t, err)
	dir := t.TempDir()
	for kind, grantsOf := range map[string]func(manifests.Binding) manifests.Grants{
		"network": func(b manifests.Binding) manifests.Grants {
			return manifests.Grants{Network: []manifests.NetworkGrant{{Binding: b, NetworkPermission: manifests.NetworkPermission{Host: "api.example.com"}}}}
		},
		"files": func(b manifests.Binding) manifests.Grants {
			return manifests.Grants{Files: []manifests.FileGrant{{Binding: b, Path: "/project", Host: dir}}}
		},
		"secrets": func(b manifests.Binding) manifests.Grants {
			return manifests.Grants{Secrets: []manifests.SecretGrant{{Binding: b, Name: "KEY", Host: "api.example.com", From: manifests.SecretSource{Env: "KEY"}}}}
		},
		"env": func(b manifests.Binding) manifests.Grants {
			return manifests.Grants{Env: []manifests.EnvGrant{{Binding: b, Name: "LANG", Value: "C"}}}
		},
		"tools": func(b manifests.Binding) manifests.Grants {
			return manifests.Grants{Calls: []manifests.CallGrant{{Binding: b, Tool: "other"}}}
		},
		"context": func(b manifests.Binding) manifests.Grants {
			return manifests.Grants{Context: []manifests.ContextGrant{{Binding: b, Name: "project_id"}}}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			for sha256, holds := range map[string]bool{"": true, digest.String(): true, strings.Repeat("ab", 32): false} {
				effective := 0
				for _, d := range load(t, r, m, grantsOf(manifests.Binding{Origin: "caisson.yaml:3", SHA256: sha256})).Decisions() {
					if d.Effective != "" {
						effective++
					}
					if d.Permission == kind && !holds {
						assert.Contains(t, d.Reason, "the grant of caisson.yaml:3 is for the module with sha256 abab")
					}
				}
				assert.Equal(t, map[bool]int{true: 1, false: 0}[holds], effective, "bound to %q", sha256)
			}
		})
	}
}

// TestGrantsOfOtherModulesAreNotLookedAt: one policy has a directory for each of two modules, of which
// one is elsewhere.
func TestGrantsOfOtherModulesAreNotLookedAt(t *testing.T) {
	r := newRuntime(t, Options{})
	m := manifest(t, netprobe, "permissions: {files: [{path: /project, access: read}], network: [{host: api.example.com}], secrets: [{name: KEY, header: X-Key, host: api.example.com}]}")
	digest, err := moduleDigest(m)
	require.NoError(t, err)
	own, other := manifests.Binding{SHA256: digest.String()}, manifests.Binding{SHA256: strings.Repeat("ab", 32)}
	dir, absent := t.TempDir(), t.TempDir()+"/absent"
	requests := manifests.NetworkPermission{Host: "api.example.com"}
	grants := manifests.Grants{
		Files: []manifests.FileGrant{{Binding: other, Path: "/project", Host: absent}, {Binding: own, Path: "/project", Host: dir}},
		Network: []manifests.NetworkGrant{
			{Binding: other, NetworkPermission: requests, Authorities: absent}, {Binding: own, NetworkPermission: requests},
		},
		Secrets: []manifests.SecretGrant{{Binding: other, Name: "KEY", Host: "api.example.com", From: manifests.SecretSource{File: absent}}},
	}
	loaded := load(t, r, m, grants)
	require.Len(t, loaded.permit.mounts, 1)
	assert.Equal(t, dir, loaded.permit.mounts[0].Host.String())
	effective := map[string]bool{}
	for _, d := range loaded.Decisions() {
		effective[d.Permission] = d.Effective != ""
	}
	assert.Equal(t, map[string]bool{"files": true, "network": true, "secrets": false}, effective)

	grants.Files[0].SHA256 = ""
	_, err = r.Load(t.Context(), m, grants)
	assert.Error(t, err, "control: a directory that is not there is a slip")
}
