package registry_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

const manifestText = `schema: caisson/v1
name: %s
description: Does things.
module: {path: tool.wasm}
`

// write creates files in a new directory.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return root
}

func named(name string) string { return fmt.Sprintf(manifestText, name) }

func names(found []registry.Found) []string {
	list := []string{}
	for _, f := range found {
		list = append(list, f.Manifest.Name)
	}
	return list
}

func TestDirectory(t *testing.T) {
	root := write(t, map[string]string{
		"b/tool.yaml":                  named("b"),
		"a/tool.yaml":                  named("a"),
		"a/deep/er/x.tool.yaml":        named("x"),
		"c/README.md":                  "no manifest",
		".git/tool.yaml":               "broken",
		"a/.cache/tool.yaml":           "broken",
		"web/node_modules/p/tool.yaml": "broken",
		"a/yaml":                       "broken",
	})
	source := registry.Directory(root, nil)
	assert.Equal(t, root, source.String())
	for range 3 {
		found, err := source.Manifests(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"x", "a", "b"}, names(found))
		assert.Equal(t, filepath.Join(root, "a", "deep", "er", "x.tool.yaml"), found[0].Manifest.File)
	}

	t.Run("a file is one manifest", func(t *testing.T) {
		found, err := registry.Directory(filepath.Join(root, "a", "tool.yaml"), nil).Manifests(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"a"}, names(found))
	})
	t.Run("a missing path", func(t *testing.T) {
		_, err := registry.Directory(filepath.Join(root, "none"), nil).Manifests(t.Context())
		require.ErrorIs(t, err, registry.ErrSource)
		require.ErrorIs(t, err, os.ErrNotExist)
	})
	t.Run("an empty directory", func(t *testing.T) {
		found, err := registry.Directory(t.TempDir(), nil).Manifests(t.Context())
		require.NoError(t, err)
		assert.Empty(t, found)
	})
	t.Run("a context that ended", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := source.Manifests(ctx)
		require.ErrorIs(t, err, context.Canceled)
	})
	t.Run("too deep", func(t *testing.T) {
		deep := write(t, map[string]string{strings.Repeat("d/", 33) + "tool.yaml": named("a")})
		_, err := registry.Directory(deep, nil).Manifests(t.Context())
		require.ErrorIs(t, err, registry.ErrSource)
		assert.ErrorContains(t, err, "folders deep")
	})
}

func TestDirectoryReportsAllThatIsBroken(t *testing.T) {
	broken := "schema: caisson/v1\nname: a\nsurprise: 1\n"
	root := write(t, map[string]string{"a/tool.yaml": broken, "b/tool.yaml": named("b")})
	found, err := registry.Directory(root, nil).Manifests(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 2)
	assert.Equal(t, []string{"a"}, found[0].Broken.Names)
	assert.Equal(t, "b", found[1].Manifest.Name)

	for name, nameless := range map[string]string{
		"a syntax error": "schema: [", "no name": "schema: caisson/v1\n", "a name that is none": "name: a b\naliases: [c]\n", "another case": "Name: c\n",
		"two names": "name: d\nname: c\n",
	} {
		root := write(t, map[string]string{"a/tool.yaml": broken, "b/tool.yaml": named("b"), "c/tool.yaml": nameless})
		found, err := registry.Directory(root, nil).Manifests(t.Context())
		assert.Empty(t, found, name)
		require.Error(t, err, name)
		assert.ErrorContains(t, err, filepath.Join("a", "tool.yaml"), name)
		assert.ErrorContains(t, err, filepath.Join("c", "tool.yaml"), name)
		var typed *manifests.Error
		require.ErrorAs(t, err, &typed, name)
		assert.NotEmpty(t, typed.Problems, name)
	}
}

// TestAttackBrokenManifest: breaking a tool's manifest does not free its name, its aliases or
// their look-alikes for a later source. Other tools in the folder are loaded.
func TestAttackBrokenManifest(t *testing.T) {
	valid := named("a") + "aliases: [old_a, older_a]\n"
	for name, text := range map[string]string{
		"an unknown key":                valid + "surprise: 1\n",
		"a cut end":                     "name: a\naliases: [old_a, older_a]\n",
		"other aliases first":           "aliases: [x]\n" + valid,
		"aliases as text":               named("a") + "aliases: old_a\naliases: older_a\n",
		"an alias that is none":         named("a") + "aliases: [old_a, 1.5, older_a, {b: c}]\n",
		"what only the runtime refuses": valid + "permissions: {llm: {tokens: 1}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := registry.New()
			o := opener{fail: map[string]error{"a": fmt.Errorf("wrapped: %w", &manifests.Error{Problems: []manifests.Problem{{File: "a/tool.yaml", Message: "unsupported"}}})}}
			first := write(t, map[string]string{"a/tool.yaml": text, "b/tool.yaml": named("b")})
			require.NoError(t, r.Load(t.Context(), registry.Directory(first, nil), o.open))
			assert.Equal(t, []string{"b"}, o.names())

			o.fail = nil
			require.NoError(t, r.Load(t.Context(), source(t, "later", "a", "c"), o.open))
			require.Error(t, r.Register("", newFake(t, "a", nil)))
			require.NoError(t, r.Load(t.Context(), source(t, "later", "A"), o.open))
			require.NoError(t, r.Register("", newFake(t, "d", aliases("old_a", "older_a"))))
			assert.Equal(t, []string{"b", "c"}, o.names())
			for _, held := range []string{"a", "old_a", "older_a"} {
				_, ok := r.Get(held)
				assert.False(t, ok, held)
				_, err := r.Invoke(t.Context(), tool.Invocation{Tool: held})
				require.ErrorIs(t, err, tool.UnknownTool)
				_, ok = r.Without().Get(held)
				assert.False(t, ok)
			}
			assert.Len(t, r.List(), 3)
			require.Len(t, r.Broken(), 1)
			assert.Subset(t, r.Broken()[0].Names, []string{"a", "old_a", "older_a"})
			assert.Len(t, r.Without().Broken(), 1)

			require.NoError(t, r.Load(t.Context(), registry.Directory(first, nil), (&opener{}).open))
			assert.Len(t, r.Broken(), 1, "it is reported once")
			require.NoError(t, r.Close(t.Context()))
		})
	}
	t.Run("control: a valid manifest has its names", func(t *testing.T) {
		r := registry.New()
		require.NoError(t, r.Load(t.Context(), registry.Directory(write(t, map[string]string{"tool.yaml": valid}), nil), (&opener{}).open))
		_, ok := r.Get("older_a")
		assert.True(t, ok)
		assert.Empty(t, r.Broken())
	})
	t.Run("a broken manifest takes no name that an earlier tool has", func(t *testing.T) {
		r := registry.New()
		require.NoError(t, r.Register("", newFake(t, "a", nil)))
		require.NoError(t, r.Load(t.Context(), registry.Directory(write(t, map[string]string{"tool.yaml": valid + "surprise: 1\n"}), nil), (&opener{}).open))
		assert.Equal(t, "a", call(t, r, "a"))
		assert.Len(t, r.Broken(), 1)
	})
	t.Run("a source may not leave out the names", func(t *testing.T) {
		nameless := static{found: append(source(t, "one", "b").found, registry.Found{Broken: &manifests.Error{}})}
		require.Error(t, registry.New().Load(t.Context(), nameless, (&opener{}).open))
	})
}

// static is a source of ready manifests.
type static struct {
	name  string
	found []registry.Found
	err   error
}

func (s static) String() string                                      { return s.name }
func (s static) Manifests(context.Context) ([]registry.Found, error) { return s.found, s.err }

// opener opens closable tools and records them.
type opener struct {
	opened []*closable
	fail   map[string]error
}

func (o *opener) open(_ context.Context, m *manifests.Manifest) (registry.Tool, error) {
	if err := o.fail[m.Name]; err != nil {
		return nil, err
	}
	c := &closable{fake: &fake{manifest: m, answer: m.Name}}
	o.opened = append(o.opened, c)
	return c, nil
}

func (o *opener) names() (opened []string) {
	for _, c := range o.opened {
		opened = append(opened, c.manifest.Name)
	}
	return opened
}

func source(t *testing.T, name string, tools ...string) static {
	s := static{name: name}
	for _, toolName := range tools {
		s.found = append(s.found, registry.Found{Manifest: newManifest(t, toolName, nil)})
	}
	return s
}

func TestLoad(t *testing.T) {
	r := registry.New()
	var o opener
	require.NoError(t, r.Load(t.Context(), source(t, "one", "a", "b", "b"), o.open))
	require.NoError(t, r.Load(t.Context(), source(t, "two", "a", "c", "b"), o.open))
	assert.Equal(t, []string{"a", "b", "c"}, o.names(), "a tool that cannot have its name is not opened")
	var dropped []string
	for _, d := range r.Duplicates() {
		dropped = append(dropped, d.Dropped.Source+"/"+d.Name)
	}
	assert.Equal(t, []string{"two/a", "one/b", "two/b"}, dropped)
	entry, ok := r.Get("b")
	require.True(t, ok)
	assert.Equal(t, "one", entry.Source)
	require.NoError(t, r.Close(t.Context()))
	for _, c := range o.opened {
		assert.EqualValues(t, 1, c.closed.Load())
	}
	require.ErrorIs(t, r.Load(t.Context(), source(t, "three", "d"), o.open), registry.ErrClosed)
	assert.Len(t, o.opened, 3)
}

// TestAttackLookAlikeIsLoaded: a tool whose name looks like an earlier tool's is not opened, in the same source or in a
// later one, and the report names both. The other tools of its source are loaded. Controls: a comparison that only
// ignores case and digits does not detect such names, and names that do not look alike are loaded.
func TestAttackLookAlikeIsLoaded(t *testing.T) {
	for _, names := range [][2]string{{"file_read", "fiIe_read"}, {"fiIe_read", "file_read"}, {"web_form", "web_forrn"}, {"run_0", "run_O"}, {"greet", "GREET"}} {
		for _, together := range []bool{true, false} {
			r := registry.New()
			var o opener
			sources := []static{source(t, "one", names[0]), source(t, "two", names[1], "other")}
			if together {
				sources = []static{source(t, "one", names[0], names[1], "other")}
			}
			for _, s := range sources {
				require.NoError(t, r.Load(t.Context(), s, o.open), "%v", names)
			}
			var loaded []string
			for _, entry := range r.List() {
				loaded = append(loaded, entry.Name)
			}
			assert.ElementsMatch(t, []string{names[0], "other"}, loaded)
			assert.Len(t, o.opened, 2)
			require.Len(t, r.Duplicates(), 1, "%v", names)
			duplicate := r.Duplicates()[0]
			assert.Equal(t, registry.LookAlike, duplicate.Reason)
			assert.Equal(t, names, [2]string{duplicate.Kept.Name, duplicate.Dropped.Name})
		}
	}
	caseless := func(name string) string {
		return strings.NewReplacer("1", "l", "0", "o").Replace(strings.ToLower(name))
	}
	for _, second := range []string{"fiIe_read", "file_rnode"} {
		first := strings.NewReplacer("I", "l", "rn", "m").Replace(second)
		assert.NotEqual(t, caseless(first), caseless(second), "control: compared without case, these are two names")
	}
	r := registry.New()
	var o opener
	require.NoError(t, r.Load(t.Context(), source(t, "one", "mail", "mall"), o.open), "control: what does not look alike")
	require.Len(t, r.List(), 2)
	s := source(t, "one", "file_read")
	s.found = append(s.found, registry.Found{Manifest: newManifest(t, "other", aliases("fiIe_read"))})
	require.NoError(t, r.Load(t.Context(), s, o.open))
	require.Len(t, r.Duplicates(), 1, "an alias that looks like a name is left out, and its tool stays")
	_, ok := r.Get("fiIe_read")
	assert.False(t, ok)
}

func TestLoadFailsAsAWhole(t *testing.T) {
	boom, bang := errors.New("boom"), errors.New("bang")
	t.Run("a tool does not open", func(t *testing.T) {
		r := registry.New()
		o := opener{fail: map[string]error{"b": boom, "d": bang}}
		err := r.Load(t.Context(), source(t, "one", "a", "b", "c", "d"), o.open)
		require.ErrorIs(t, err, boom)
		require.ErrorIs(t, err, bang)
		var typed *registry.Error
		require.ErrorAs(t, err, &typed)
		assert.Equal(t, "one", typed.Name)
		assert.Empty(t, r.List())
		assert.Equal(t, []string{"a", "c"}, o.names())
		for _, c := range o.opened {
			assert.EqualValues(t, 1, c.closed.Load(), "opened tools are closed again")
		}
	})
	never := func(_ context.Context, m *manifests.Manifest) (registry.Tool, error) {
		assert.Fail(t, "opened", m.Name)
		return nil, nil
	}
	for name, test := range map[string]struct {
		source registry.Source
		open   func(context.Context, *manifests.Manifest) (registry.Tool, error)
		want   error
	}{
		"a broken source":          {static{name: "one", err: boom}, never, boom},
		"an invalid manifest":      {static{found: append(source(t, "one", "a").found, registry.Found{})}, never, registry.ErrInvalidTool},
		"no source":                {nil, never, registry.ErrSource},
		"nothing to open with":     {static{}, nil, registry.ErrSource},
		"a tool that opens as nil": {source(t, "one", "a"), func(context.Context, *manifests.Manifest) (registry.Tool, error) { return nil, nil }, registry.ErrInvalidTool},
	} {
		t.Run(name, func(t *testing.T) {
			r := registry.New()
			require.ErrorIs(t, r.Load(t.Context(), test.source, test.open), test.want)
			assert.Empty(t, r.List())
		})
	}
	t.Run("the context ends", func(t *testing.T) {
		r := registry.New()
		ctx, cancel := context.WithCancel(t.Context())
		var o opener
		open := func(ctx context.Context, m *manifests.Manifest) (registry.Tool, error) {
			defer cancel()
			return o.open(ctx, m)
		}
		require.ErrorIs(t, r.Load(ctx, source(t, "one", "a", "b"), open), context.Canceled)
		assert.Equal(t, []string{"a"}, o.names())
		assert.EqualValues(t, 1, o.opened[0].closed.Load())
	})
	t.Run("a name is taken while tools open", func(t *testing.T) {
		r := registry.New()
		var o opener
		rival := newFake(t, "a", nil)
		open := func(ctx context.Context, m *manifests.Manifest) (registry.Tool, error) {
			if err := r.Register("rival", rival); err != nil {
				return nil, err
			}
			return o.open(ctx, m)
		}
		require.NoError(t, r.Load(t.Context(), source(t, "one", "a"), open))
		entry, _ := r.Get("a")
		assert.Equal(t, "rival", entry.Source)
		assert.EqualValues(t, 1, o.opened[0].closed.Load())
	})
	t.Run("the registry closes while tools open", func(t *testing.T) {
		r := registry.New()
		var o opener
		open := func(ctx context.Context, m *manifests.Manifest) (registry.Tool, error) {
			if err := r.Close(ctx); err != nil {
				return nil, err
			}
			return o.open(ctx, m)
		}
		require.ErrorIs(t, r.Load(t.Context(), source(t, "one", "a", "b"), open), registry.ErrClosed)
		for _, c := range o.opened {
			assert.EqualValues(t, 1, c.closed.Load())
		}
	})
}

// TestDirectoryLoadsWithAFunction: the manifests are loaded concurrently, and returned in their order.
func TestDirectoryLoadsWithAFunction(t *testing.T) {
	content, want := map[string]string{}, []string{}
	for i := range 100 {
		name := fmt.Sprintf("tool_%03d", i)
		// A schema out of the ordinary, which is checked by a library.
		content[name+".tool.yaml"] = named(name) + "parameters: {properties: {a: {type: [string, \"null\"], pattern: ^a}}}\n"
		want = append(want, name)
	}
	root := write(t, content)
	var calls atomic.Int64
	found, err := registry.Directory(root, func(path string) (*manifests.Manifest, error) {
		calls.Add(1)
		return manifests.Load(path)
	}).Manifests(t.Context())
	require.NoError(t, err)
	assert.Equal(t, want, names(found))
	assert.EqualValues(t, len(want), calls.Load())

	t.Run("a failure", func(t *testing.T) {
		_, err := registry.Directory(root, func(string) (*manifests.Manifest, error) { return nil, os.ErrPermission }).Manifests(t.Context())
		require.ErrorIs(t, err, os.ErrPermission)
	})
	t.Run("a panic reaches the caller", func(t *testing.T) {
		assert.Panics(t, func() {
			_, _ = registry.Directory(root, func(string) (*manifests.Manifest, error) { panic("broken") }).Manifests(t.Context())
		})
	})
	t.Run("a context that is done", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		loaded := int64(0)
		_, err := registry.Directory(root, func(path string) (*manifests.Manifest, error) {
			atomic.AddInt64(&loaded, 1)
			cancel()
			return manifests.Load(path)
		}).Manifests(ctx)
		require.ErrorIs(t, err, context.Canceled)
		assert.Less(t, loaded, int64(len(want)))
	})
}
