package runtime

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

const strictness = "parameters: {type: object, properties: {strictness: {type: string}, do: {type: string}}}\nbehavior: {profile: \"{strictness}\"}\n"

// TestCallsNameAProfile: an argument narrows the limits and permissions of a call, and never widens those of the
// operator and the manifest.
func TestCallsNameAProfile(t *testing.T) {
	lenient := manifests.BuiltinProfiles()[2]
	own := manifests.Profile{Name: "brief", Limits: manifests.Limits{Timeout: 100 * time.Millisecond}}
	for name, c := range map[string]struct {
		options  Options
		manifest string
		want     map[string]time.Duration // by profile
	}{
		"standard": {Options{}, "", map[string]time.Duration{"": 10 * time.Second, "strict": 5 * time.Second, "standard": 10 * time.Second, "lenient": 10 * time.Second}},
		"lenient":  {Options{Profile: lenient}, "", map[string]time.Duration{"": 30 * time.Second, "strict": 5 * time.Second, "standard": 10 * time.Second, "lenient": 30 * time.Second}},
		"manifest": {Options{Profile: lenient}, "limits: {timeout: 8s}\n", map[string]time.Duration{"": 8 * time.Second, "strict": 5 * time.Second, "standard": 8 * time.Second, "lenient": 8 * time.Second}},
		"own":      {Options{Profiles: append(manifests.BuiltinProfiles(), own)}, "", map[string]time.Duration{"brief": 100 * time.Millisecond, "strict": 5 * time.Second}},
	} {
		loaded := load(t, newRuntime(t, c.options), manifest(t, probe, strictness+c.manifest), manifests.Grants{})
		for profile, want := range c.want {
			arguments := `{}`
			if profile != "" {
				arguments = `{"strictness": "` + profile + `"}`
			}
			under, err := loaded.under(invocation(t, arguments, nil).Arguments)
			require.NoError(t, err)
			assert.Equal(t, want, under.Limits().Timeout, "%s: %s", name, profile)
			if profile == "brief" {
				outcome, err := invoke(t, loaded, `{"strictness": "brief", "do": "spin"}`)
				require.Error(t, err)
				assert.Equal(t, tool.Deadline, outcome.Result.Kind)
				assert.Contains(t, outcome.Result.Error, "100ms")
			}
		}
		for _, wrong := range []string{`{"strictness": "lax"}`, `{"strictness": 1}`, `{"strictness": null}`, `{"strictness": ""}`} {
			outcome, err := invoke(t, loaded, wrong)
			require.Error(t, err)
			assert.Equal(t, tool.InvalidArguments, outcome.Result.Kind)
			assert.Contains(t, outcome.Result.Error, "there is no profile ")
			assert.Contains(t, outcome.Result.Error, "lenient, standard, strict")
		}
		require.NoError(t, loaded.Close(t.Context()))
	}
}

// TestAttackWritesUnderAProfile: a profile that forbids writing forbids it to the call that names it. The control names
// none.
func TestAttackWritesUnderAProfile(t *testing.T) {
	dir := t.TempDir()
	m := manifest(t, probe, strictness+"permissions: {files: [{path: /project, access: read-write}]}\n")
	grants := manifests.Grants{Files: []manifests.FileGrant{manifests.GrantDirectory("/project", dir, manifests.AccessReadWrite)}}
	loaded := load(t, newRuntime(t, Options{}), m, grants)
	for strictly, want := range map[string]bool{"": true, "standard": true, "strict": false} {
		request := map[string]any{"do": "raw", "calls": []step{open("new.txt", creates, writes)}}
		if strictly != "" {
			request["strictness"] = strictly
		}
		outcome, err := invoke(t, loaded, string(encode(t, request)))
		require.NoError(t, err, outcome.Result.Error)
		if want {
			require.NoError(t, os.Remove(filepath.Join(dir, "new.txt")))
			continue
		}
		assert.EqualValues(t, erofs, decode[[]stepAnswer](t, outcome.Result.Data)[0].Errno)
		require.NotEmpty(t, outcome.Denials)
		assert.Contains(t, outcome.Denials[len(outcome.Denials)-1].Rule, "the profile strict allows no writing")
		assert.NoFileExists(t, filepath.Join(dir, "new.txt"))
	}
}

// TestAttackSwappedModuleUnderAProfile: an approval of one module does not hold for another one that replaces it before
// the call, whatever profile the call names. The control is the call before the module is swapped.
func TestAttackSwappedModuleUnderAProfile(t *testing.T) {
	for _, first := range []string{"{}", `{"strictness": "strict"}`} {
		for _, second := range []string{"{}", `{"strictness": "strict"}`, `{"strictness": "lenient"}`} {
			m := manifest(t, probe, strictness)
			control := load(t, newRuntime(t, Options{}), m, manifests.Grants{})
			_, err := control.Identity(t.Context())
			require.NoError(t, err)
			mustInvoke(t, control, second)

			for name, settle := range map[string]func(loaded *Tool){
				"approved": func(loaded *Tool) {
					_, err := loaded.Identity(t.Context())
					require.NoError(t, err)
				},
				"called": func(loaded *Tool) { mustInvoke(t, loaded, first) },
			} {
				m := manifest(t, probe, strictness)
				loaded := load(t, newRuntime(t, Options{}), m, manifests.Grants{})
				settle(loaded)
				before, err := loaded.Identity(t.Context())
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(m.File), "guest.wasm"), append(readGuest(t, probe), "\x00\x02\x01x"...), 0o600)) // with a custom section
				if name == "called" && first == second {
					continue // it keeps using the compiled module
				}
				_, err = invoke(t, loaded, second)
				require.ErrorIs(t, err, ErrDigest, "%s with %s, then %s", name, first, second)
				after, err := loaded.Identity(t.Context())
				require.NoError(t, err)
				assert.Equal(t, before, after)
			}
		}
	}
}
