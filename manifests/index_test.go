package manifests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/internal/schema"
)

// validManifests returns the paths of all manifests in this repository that are valid.
func validManifests(t testing.TB) []string {
	t.Helper()
	var valid []string
	for _, pattern := range []string{"testdata/valid/*", "../wasm-tools/*/*tool.yaml", "../examples/*/*tool.yaml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		valid = append(valid, files...)
	}
	return valid
}

// requireEqual requires that a restored manifest is equal to the parsed one in all that it says.
func requireEqual(t testing.TB, parsed, restored *Manifest) {
	t.Helper()
	require.Nil(t, parsed.restored)
	require.NotNil(t, restored.restored, "it was parsed")
	for path := range parsed.places {
		require.Equal(t, parsed.Line(path), restored.Line(path), path)
		require.Equal(t, parsed.Line(path+".none"), restored.Line(path+".none"), path)
		require.Equal(t, parsed.Problem(path, mistake.Conflict, "", ""), restored.Problem(path, mistake.Conflict, "", ""))
	}
	requireSameSchema(t, parsed.Parameters, restored.Parameters)
	requireSameSchema(t, parsed.Result, restored.Result)
	left, right := *parsed, *restored
	for _, m := range []*Manifest{&left, &right} {
		m.Parameters, m.Result, m.places, m.restored = nil, nil, nil, nil
	}
	require.Equal(t, left, right)
	require.NoError(t, restored.Confirm())
}

func requireSameSchema(t testing.TB, parsed, restored *schema.Schema) {
	t.Helper()
	require.Equal(t, parsed == nil, restored == nil)
	if parsed == nil {
		return
	}
	require.Equal(t, parsed.JSON(), restored.JSON())
	for _, value := range []string{"{}", `{"path":"a"}`, `{"path":1}`, "[]"} {
		require.Equal(t, parsed.Validate(t.Context(), []byte(value)), restored.Validate(t.Context(), []byte(value)))
	}
	require.Equal(t, slices.Sorted(maps.Keys(parsed.Structure().Properties)), slices.Sorted(maps.Keys(restored.Structure().Properties)))
}

func loaded(t testing.TB, x *Index, path string) *Manifest {
	t.Helper()
	m, err := x.Load(path)
	require.NoError(t, err)
	return m
}

func TestIndexRestoresManifests(t *testing.T) {
	first := NewIndex("v1", nil)
	for _, path := range validManifests(t) {
		assert.Nil(t, loaded(t, first, path).restored)
	}
	second := NewIndex("v1", first.Text())
	for _, path := range validManifests(t) {
		parsed, err := Load(path)
		require.NoError(t, err)
		requireEqual(t, parsed, loaded(t, second, path))
	}
	assert.Zero(t, second.parsed)
	assert.Empty(t, second.Text(), "there is nothing new to store")

	other := NewIndex("v2", first.Text())
	loaded(t, other, validManifests(t)[0])
	assert.Equal(t, 1, other.parsed, "another version may have had other rules")
}

// TestRecordHoldsEveryField: a field that is added to a manifest is in its record, too.
func TestRecordHoldsEveryField(t *testing.T) {
	var m Manifest
	fill(t, reflect.ValueOf(&m).Elem(), "Manifest")
	m.places = places{"module.path": {line: 3}, "permissions.files[0]": {line: 4}}
	again := restore(m.File, nil, recordOf(&m))
	require.NotNil(t, again)
	assert.JSONEq(t, string(m.Parameters.JSON()), string(again.Parameters.JSON()))
	assert.JSONEq(t, string(m.Result.JSON()), string(again.Result.JSON()))
	again.restored, again.Parameters, again.Result = nil, m.Parameters, m.Result
	assert.Equal(t, m, *again)

	for _, empty := range []Manifest{
		{Parameters: schema.Known([]byte(`{}`))},
		{Parameters: schema.Known([]byte(`{}`)), Aliases: []string{}, Tests: []Test{{Files: map[string]string{}}}},
	} {
		again := restore("", nil, recordOf(&empty))
		require.NotNil(t, again)
		again.restored, again.Parameters = nil, empty.Parameters
		assert.Equal(t, empty, *again, "nil and empty are different")
	}
}

// fill sets everything in a value to something else than its zero value.
func fill(t *testing.T, v reflect.Value, path string) {
	switch to := v.Addr().Interface().(type) {
	case **schema.Schema:
		*to = schema.Known([]byte(`{"title":"` + path + `"}`))
		return
	case *json.RawMessage:
		*to = fmt.Appendf(nil, "[%q]", path+"<\u2028>")
		return
	case *permission.GuestPath:
		*to = permission.NewGuestPath("/" + path)
		return
	case *modules.ArgTemplate:
		template, err := modules.ParseArgTemplate("--{" + path + "}")
		require.NoError(t, err)
		*to = template
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(path)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(-1 << 40)
	case reflect.Uint8:
		v.SetUint(0xff)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0), path+"0")
		fill(t, v.Index(1), path+"1")
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		fill(t, value, path)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key"), value)
		v.SetMapIndex(reflect.ValueOf(""), value)
	case reflect.Struct:
		for i := range v.NumField() {
			name := path + "." + v.Type().Field(i).Name
			if v.Type().Field(i).IsExported() {
				fill(t, v.Field(i), name)
			} else if !slices.Contains([]string{"Manifest.places", "Manifest.restored", "Manifest.origin"}, name) {
				t.Fatalf("no record holds the field %s", name)
			}
		}
	default:
		t.Fatalf("no record holds values such as %s", path)
	}
}

const fewKeys = "schema: caisson/v1\nname: tool_%d\ndescription: Does %d.\nmodule: {path: tool.wasm}\n"

// manyManifests writes manifests into a folder and returns their paths.
func manyManifests(t testing.TB, n int) []string {
	t.Helper()
	dir := t.TempDir()
	var files []string
	for i := range n {
		files = append(files, filepath.Join(dir, fmt.Sprintf("%03d.tool.yaml", i)))
		require.NoError(t, os.WriteFile(files[i], fmt.Appendf(nil, fewKeys, i, i), 0o600))
	}
	return files
}

// TestIndexParsesWhatIsNew counts: of 500 manifests, none is parsed again that has not changed.
func TestIndexParsesWhatIsNew(t *testing.T) {
	files := manyManifests(t, 500)
	var text []byte
	load := func(parsed int) {
		t.Helper()
		x := NewIndex("v1", text)
		for _, file := range files {
			loaded(t, x, file)
		}
		assert.Equal(t, parsed, x.parsed)
		if parsed == 0 {
			assert.Empty(t, x.Text())
			return
		}
		text = x.Text()
	}
	load(500)
	load(0)
	require.NoError(t, os.WriteFile(files[7], fmt.Appendf(nil, fewKeys, 700, 7), 0o600))
	load(1)
	load(0)
	require.NoError(t, os.Rename(files[8], files[8]+".tool.yaml"))
	files[8] += ".tool.yaml"
	load(0)
	loaded(t, NewIndex("v1", text), files[8])

	as := filepath.Join(t.TempDir(), "tool.json") // in which the same text means something else
	require.NoError(t, os.WriteFile(as, fmt.Appendf(nil, fewKeys, 1, 1), 0o600))
	_, err := NewIndex("v1", text).Load(as)
	require.ErrorIs(t, err, ErrInvalid)
}

// TestIndexForgetsNothingBroken: the problems of a broken manifest are reported each time.
func TestIndexForgetsNothingBroken(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "tool.yaml")
	require.NoError(t, os.WriteFile(broken, fmt.Appendf(nil, fewKeys+"nonsense: true\n", 1, 1), 0o600))
	x := NewIndex("v1", nil)
	_, want := Load(broken)
	for range 2 {
		_, err := x.Load(broken)
		require.Equal(t, want, err)
		assert.Empty(t, x.Text())
	}
	_, err := x.Load(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, ErrFile)
}

// TestAttackDamagedIndex: whatever is left of an index, manifests are what their files say. In the
// control the damage gets in.
func TestAttackDamagedIndex(t *testing.T) {
	files := manyManifests(t, 3)
	first := NewIndex("v1", nil)
	for _, file := range files {
		loaded(t, first, file)
	}
	text := first.Text()
	check := func(parts ...[]byte) {
		x := NewIndex("v1", slices.Concat(parts...))
		for i, file := range files {
			require.Equal(t, fmt.Sprintf("tool_%d", i), loaded(t, x, file).Name)
		}
	}
	for i := range text {
		check(text[:i])
		check(text[:i], []byte{text[i] ^ 1}, text[i+1:])
		check(text[:i], text[i+1:])
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		at, to := random.IntN(len(text)), random.IntN(len(text))
		check(text[:at], text[to:])
	}

	forged := forge(t, files[0], func(m *Manifest) { m.Name = "tool_9" })
	assert.Equal(t, "tool_9", loaded(t, NewIndex("v1", forged), files[0]).Name)
	forged[len(forged)-1] ^= 1
	assert.Equal(t, "tool_0", loaded(t, NewIndex("v1", forged), files[0]).Name)
}

// forge returns the text of an index that says something else of a manifest than its file.
func forge(t *testing.T, path string, change func(m *Manifest)) []byte {
	t.Helper()
	m, err := Load(path)
	require.NoError(t, err)
	source, err := os.ReadFile(path)
	require.NoError(t, err)
	change(m)
	x := NewIndex("v1", nil)
	x.use(keyOf(path, source), recordOf(m), 0)
	return x.Text()
}

// TestAttackForgedRecord: whatever an index says of a manifest, parsing it finds that out.
func TestAttackForgedRecord(t *testing.T) {
	file := manyManifests(t, 1)[0]
	for name, change := range map[string]func(m *Manifest){
		"its name":      func(m *Manifest) { m.Name = "tool_9" },
		"an alias":      func(m *Manifest) { m.Aliases = []string{"tool_9"} },
		"its module":    func(m *Manifest) { m.Module.Path = "other.wasm" },
		"a permission":  func(m *Manifest) { m.Permissions.Env = []string{"PATH"} },
		"a line":        func(m *Manifest) { m.places["module"] = position{line: 77} },
		"its arguments": func(m *Manifest) { m.Parameters = schema.Known([]byte(`true`)) },
		"no schema":     func(m *Manifest) { m.Parameters = schema.Known([]byte(`{"type":7}`)) },
	} {
		t.Run(name, func(t *testing.T) {
			forged := loaded(t, NewIndex("v1", forge(t, file, change)), file)
			require.NotNil(t, forged.restored)
			for range 2 {
				require.ErrorIs(t, forged.Confirm(), ErrIndex)
			}
			if name == "no schema" {
				require.Error(t, forged.Parameters.Validate(t.Context(), []byte(`{}`)), "nothing fits an invalid schema")
			}
		})
	}
	control := loaded(t, NewIndex("v1", forge(t, file, func(*Manifest) {})), file)
	require.NotNil(t, control.restored)
	require.NoError(t, control.Confirm())
}

func TestIndexIsBounded(t *testing.T) {
	file, key := manyManifests(t, 1)[0], func(c string) string { return strings.Repeat(c, 64) }
	x := NewIndex("v1", nil)
	x.stored[key("a")] = strings.Repeat("x", MaxIndexBytes/2)
	x.stored[key("b")] = strings.Repeat("x", MaxIndexBytes/2)
	loaded(t, x, file)
	text := x.Text()
	assert.Less(t, len(text), MaxIndexBytes)
	assert.Greater(t, len(text), MaxIndexBytes/2)
	again := NewIndex("v1", text)
	loaded(t, again, file)
	assert.Zero(t, again.parsed, "a used record stays")
	assert.Len(t, again.stored, 2, "and as many other records as fit")

	assert.Empty(t, NewIndex("v1", append(text, make([]byte, MaxIndexBytes)...)).stored)
	full := NewIndex("v1", nil)
	full.used[key("a")] = strings.Repeat("x", MaxIndexBytes)
	assert.Nil(t, full.Text(), "what does not fit is not written again and again")
}

func TestIndexIsConcurrent(t *testing.T) {
	files := manyManifests(t, 20)
	x := NewIndex("v1", nil)
	for range 2 {
		var loaders sync.WaitGroup
		for _, file := range append(files, files...) {
			loaders.Go(func() {
				m, err := x.Load(file)
				assert.NoError(t, err)
				assert.NoError(t, m.Confirm())
				assert.NotZero(t, m.Line("name"))
			})
		}
		loaders.Wait()
		x = NewIndex("v1", x.Text())
	}
}

// FuzzIndex: loading succeeds with any text of an index, and Confirm detects a wrong name.
func FuzzIndex(f *testing.F) {
	file := manyManifests(f, 1)[0]
	x := NewIndex("v1", nil)
	loaded(f, x, file)
	head, entries, _ := bytes.Cut(x.Text(), []byte("\n"))
	f.Add(x.Text())
	f.Add(entries)
	f.Add(head)
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, text := range [][]byte{text, []byte(x.head(string(text)) + "\n" + string(text))} {
			m, err := NewIndex("v1", text).Load(file)
			require.NoError(t, err)
			if m.Confirm() == nil {
				require.Equal(t, "tool_0", m.Name)
			}
		}
	})
}

// FuzzRecord: bytes are a record, or they are not.
func FuzzRecord(f *testing.F) {
	for _, path := range validManifests(f) {
		m, err := Load(path)
		require.NoError(f, err)
		f.Add(recordOf(m))
	}
	f.Add("")
	f.Add(strings.Repeat("\xff", 200))
	f.Add(strings.Repeat("[", 20_000))
	f.Add(`{"Manifest":{"Parameters":7}}`)
	f.Fuzz(func(t *testing.T, text string) {
		m := restore("tool.yaml", []byte("schema: caisson/v1\n"), text)
		if m == nil {
			return
		}
		assert.NotNil(t, m.Parameters)
		_ = m.Parameters.Validate(t.Context(), []byte(`{}`))
		_, _ = m.Line("module.path"), m.Line("name")
		require.ErrorIs(t, m.Confirm(), ErrIndex)
		require.NotNil(t, restore("tool.yaml", nil, recordOf(m)), "it is a record again")
	})
}

// FuzzParseAndRestore: the restored manifest equals the parsed one.
func FuzzParseAndRestore(f *testing.F) {
	for _, path := range validManifests(f) {
		source, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(source, filepath.Ext(path) == ".json")
	}
	f.Fuzz(func(t *testing.T, source []byte, asJSON bool) {
		file := "tool.yaml"
		if asJSON {
			file = "tool.json"
		}
		if m, err := Parse(file, source); err == nil {
			requireEqual(t, m, restore(file, source, recordOf(m)))
		}
	})
}

// BenchmarkLoad loads 500 manifests, with and without an index.
func BenchmarkLoad(b *testing.B) {
	files := manyManifests(b, 500)
	x := NewIndex("v1", nil)
	load := func(load func(path string) (*Manifest, error)) {
		for _, file := range files {
			if _, err := load(file); err != nil {
				b.Fatal(err)
			}
		}
	}
	load(x.Load)
	text := x.Text()
	b.Run("parsed", func(b *testing.B) {
		for b.Loop() {
			load(Load)
		}
	})
	b.Run("restored", func(b *testing.B) {
		for b.Loop() {
			load(NewIndex("v1", text).Load)
		}
	})
}
