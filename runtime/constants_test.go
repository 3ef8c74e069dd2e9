package runtime

import (
	"fmt"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// constantsAt is a mount of one constant file, where the guest early looks for a tenant's.
func constantsAt(t *testing.T, guest, content string) files.Mount {
	t.Helper()
	tree, err := guestfiles.NewTree(fstest.MapFS{"tenant.txt": {Data: []byte(content)}})
	require.NoError(t, err)
	return files.Mount{Guest: permission.NewGuestPath(guest), Tree: tree}
}

// early writes a manifest of the guest early that requests no files.
func early(t *testing.T, language, does, more string) *manifests.Manifest {
	t.Helper()
	return manifest(t, languages[language], fmt.Sprintf("module: {path: guest.wasm, args: [%s], stdout: text}\n"+
		"parameters: {type: object, properties: {who: {type: string}}}\nlimits: {memory: 64MiB}\n%s", does, more))
}

// TestConstantFilesAreReadAtTheStart: the guest finds them at their path, in every language, without
// a permission, and calls resume it although it reads them first. Two tools of one module do not get each
// other's.
func TestConstantFilesAreReadAtTheStart(t *testing.T) {
	r := newRuntime(t, Options{})
	for language := range languages {
		for does, want := range map[string]string{"file": "%s", "stat": "%d", "list": "tenant.txt;"} {
			t.Run(language+" "+does, func(t *testing.T) {
				for _, content := range []string{"of one", "of another"} {
					m := early(t, language, does, "behavior: {snapshot: start}\n")
					loaded, err := r.loadWith(t.Context(), m, manifests.Grants{}, constantsAt(t, "/project", content))
					require.NoError(t, err)
					told := want
					switch does {
					case "file":
						told = fmt.Sprintf(want, content)
					case "stat":
						told = fmt.Sprintf(want, len(content))
					}
					for n := range 4 {
						who := tenants[n]
						outcome, err := loaded.Invoke(t.Context(), invocationOf(t, who))
						require.NoError(t, err, outcome.Log)
						assert.Equal(t, told+" "+inputOf(who), outcome.Result.Output)
						assert.Empty(t, outcome.Denials)
						if n == 1 {
							started, reason := loaded.program.settled(t)
							assert.NotNil(t, started, reason)
						}
					}
				}
			})
		}
	}
}

// TestConstantFilesCannotBeChanged: a guest that writes gets the refusal of a read-only directory, with a receipt, and
// the next call reads the unchanged files.
func TestConstantFilesCannotBeChanged(t *testing.T) {
	r := newRuntime(t, Options{})
	loaded, err := r.loadWith(t.Context(), manifest(t, probe, ""), manifests.Grants{}, constantsAt(t, "/project", "constant"))
	require.NoError(t, err)
	for range 3 {
		answers, outcome := alice(t, loaded, open("tenant.txt", 0, reads|writes), open("new.txt", creates, writes), open("tenant.txt", truncate, reads),
			open("tenant.txt", 0, reads), step{"call": "fd_read", "fd": -4, "size": 100})
		require.Len(t, answers, 5)
		for _, refused := range answers[:3] {
			assert.EqualValues(t, erofs, refused.Errno)
		}
		assert.Zero(t, answers[3].Errno)
		assert.Equal(t, "constant", answers[4].Text)
		denials := slices.DeleteFunc(outcome.Denials, func(d tool.Denial) bool { return d.Note })
		require.Len(t, denials, 2)
		for _, denial := range denials {
			assert.Equal(t, "the directory /project is read-only: it is part of the tool", denial.Rule)
			assert.Equal(t, tool.Allow{}, denial.Allow, "nothing allows it")
		}
	}
}

// TestConstantFilesArePartOfTheIdentity: an approval does not pass to a tool with other files.
func TestConstantFilesArePartOfTheIdentity(t *testing.T) {
	r := newRuntime(t, Options{})
	m := early(t, "C", "file", "")
	identity := func(own ...files.Mount) string {
		loaded, err := r.loadWith(t.Context(), m, manifests.Grants{}, own...)
		require.NoError(t, err)
		id, err := loaded.Identity(t.Context())
		require.NoError(t, err)
		return id
	}
	first := identity(constantsAt(t, "/project", "a"))
	assert.Equal(t, first, identity(constantsAt(t, "/project", "a")))
	seen := map[string]bool{first: true}
	for _, other := range [][]files.Mount{nil, {constantsAt(t, "/project", "b")}, {constantsAt(t, "/other", "a")}} {
		assert.False(t, seen[identity(other...)])
		seen[identity(other...)] = true
	}
}

func TestConstantFilesMustNotOverlap(t *testing.T) {
	r := newRuntime(t, Options{})
	m := early(t, "C", "file", "permissions: {files: [{path: /project/data}]}\n")
	a, below := constantsAt(t, "/a", ""), constantsAt(t, "/a/b", "")
	for text, own := range map[string][]files.Mount{
		"at /project overlap its files at /project/data":      {constantsAt(t, "/project", "")},
		"at /project/data overlap its files":                  {constantsAt(t, "/project/data", "")},
		"at /project/data/below overlap its files":            {constantsAt(t, "/project/data/below", "")},
		"at / overlap its files":                              {constantsAt(t, "/", "")},
		"/a/b: invalid argument: it overlaps the mount at /a": {below, a},
		"/a: invalid argument: it overlaps the mount at /a":   {a, a},
		"constant files of guest: ":                           {{Guest: permission.NewGuestPath("relative"), Tree: a.Tree}},
		"/a: invalid argument: ":                              {{Guest: a.Guest}},
	} {
		_, err := r.loadWith(t.Context(), m, manifests.Grants{}, own...)
		assert.ErrorContains(t, err, text)
	}
	_, err := r.loadWith(t.Context(), m, manifests.Grants{}, constantsAt(t, "/project/datum", ""))
	assert.NoError(t, err, "control")
}
