package runtime

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/internal/interpreter"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// scriptIn writes files, and a manifest with this module, into a folder.
func scriptIn(t *testing.T, module string, content map[string]string) *manifests.Manifest {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return manifestIn(t, dir, "script", "module: "+module+"\n")
}

// wheel returns an archive with these files.
func wheel(t *testing.T, content map[string]string) string {
	t.Helper()
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	for name, text := range content {
		w, err := archive.Create(name)
		require.NoError(t, err)
		_, err = w.Write([]byte(text))
		require.NoError(t, err)
	}
	require.NoError(t, archive.Close())
	return packed.String()
}

// twice returns a wheel with two files of one name.
func twice(t *testing.T) string {
	t.Helper()
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	for range 2 {
		_, err := archive.Create("x.py")
		require.NoError(t, err)
	}
	require.NoError(t, archive.Close())
	return packed.String()
}

// TestAttackRepeatedFiles: a file that is in several wheels is unpacked once. The second one here is damaged, which
// unpacking would find, as the control does.
func TestAttackRepeatedFiles(t *testing.T) {
	whole := wheel(t, map[string]string{"x.py": strings.Repeat("#", 1000)})
	at := strings.LastIndex(whole, "PK\x01\x02") + 16 // its checksum, in the archive's directory
	damaged := whole[:at] + string([]byte{^whole[at]}) + whole[at+1:]
	content := map[string]string{"a.py": "", "x-1-py3-none-any.whl": whole, "y-1-py3-none-any.whl": damaged}
	_, err := InspectModule(scriptIn(t, "{script: a.py, packages: [y-1-py3-none-any.whl]}", content))
	require.ErrorContains(t, err, "checksum", "control")
	_, err = InspectModule(scriptIn(t, "{script: a.py, packages: [x-1-py3-none-any.whl, y-1-py3-none-any.whl]}", content))
	require.NoError(t, err)
}

// TestWrongScripts: a tool whose script or packages cannot be read is unavailable, and the error names the file.
func TestWrongScripts(t *testing.T) {
	const script = "def run(a): pass\n"
	many := map[string]string{}
	for i := range guestfiles.MaxTreeNames {
		many[fmt.Sprintf("x%d/y%d.py", i%200, i)] = ""
	}
	for name, c := range map[string]struct {
		module  string
		content map[string]string
		want    string
	}{
		"no script":           {"{script: a.py}", nil, "a.py does not exist"},
		"folder":              {"{script: a.py}", map[string]string{"a.py/x": ""}, "a.py is not a regular file"},
		"no package":          {"{script: a.py, packages: [lib]}", map[string]string{"a.py": script}, "lib does not exist"},
		"package is a file":   {"{script: a.py, packages: [lib.py]}", map[string]string{"a.py": script, "lib.py": ""}, "the package lib.py is a file; name a folder, or a wheel that ends in .whl"},
		"empty package":       {"{script: a.py, packages: [lib]}", map[string]string{"a.py": script, "lib/__pycache__/a.pyc": ""}, "the package lib has no files"},
		"no wheel":            {"{script: a.py, packages: [x-1-py3-none-any.whl]}", map[string]string{"a.py": script}, "x-1-py3-none-any.whl does not exist"},
		"not a wheel":         {"{script: a.py, packages: [x-1-py3-none-any.whl]}", map[string]string{"a.py": script, "x-1-py3-none-any.whl": "text"}, "x-1-py3-none-any.whl is not a wheel: zip: not a valid zip file"},
		"native wheel":        {"{script: a.py, packages: [x-1-cp312-cp312-linux_x86_64.whl]}", map[string]string{"a.py": script}, "is not of pure Python 3; take one whose name ends in -py3-none-any.whl"},
		"wheel of JavaScript": {"{script: a.mjs, packages: [x-1-py3-none-any.whl]}", map[string]string{"a.mjs": ""}, "is a wheel, which only Python has; name a folder"},
		"wheel with two":      {"{script: a.py, packages: [x-1-py3-none-any.whl]}", map[string]string{"a.py": script, "x-1-py3-none-any.whl": twice(t)}, `holds "x.py" twice`},
		"wheel of backslash":  {"{script: a.py, packages: [x-1-py3-none-any.whl]}", map[string]string{"a.py": script, "x-1-py3-none-any.whl": wheel(t, map[string]string{`x\..\y.py`: ""})}, `the name of "packages/x\\..\\y.py" cannot be used in a guest's path`},
		"wheel of too many":   {"{script: a.py, packages: [x-1-py3-none-any.whl]}", map[string]string{"a.py": script, "x-1-py3-none-any.whl": wheel(t, many)}, "there are more than 20000 files; leave out what the tool does not need"},
		"wheel that escapes":  {"{script: a.py, packages: [x-1-py3-none-any.whl]}", map[string]string{"a.py": script, "x-1-py3-none-any.whl": wheel(t, map[string]string{"../../driver.py": ""})}, `holds "../../driver.py", which is not a plain file`},
	} {
		t.Run(name, func(t *testing.T) {
			m := scriptIn(t, c.module, c.content)
			loaded := load(t, shared, m, manifests.Grants{})
			assert.Contains(t, loaded.Unavailable(), c.want)
			err := loaded.Prepare(t.Context())
			require.ErrorIs(t, err, ErrModule)
			assert.ErrorContains(t, err, c.want)
			outcome, err := invoke(t, loaded, "{}")
			require.Error(t, err)
			assert.Contains(t, outcome.Result.Error, c.want)
			_, inspected := InspectModule(m)
			assert.ErrorContains(t, inspected, c.want)
		})
	}
}

// TestAttackLinksInPackages: a package brings no file of the host's with it. The control is the file itself.
func TestAttackLinksInPackages(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.py")
	require.NoError(t, os.WriteFile(secret, []byte("x = 1"), 0o600))
	m := scriptIn(t, "{script: a.py, packages: [lib]}", map[string]string{"a.py": "", "lib/a.py": ""})
	_, err := InspectModule(m)
	require.NoError(t, err, "control")
	link := filepath.Join(filepath.Dir(m.File), "lib", "link.py")
	require.NoError(t, os.Symlink(secret, link))
	_, err = InspectModule(m)
	require.ErrorContains(t, err, "lib/link.py is neither a regular file nor a folder; a package must hold its own files")
	require.NoError(t, os.Remove(link))
	require.NoError(t, os.Remove(filepath.Join(filepath.Dir(m.File), "a.py")))
	require.NoError(t, os.Symlink(secret, filepath.Join(filepath.Dir(m.File), "a.py")))
	_, err = InspectModule(m)
	require.Error(t, err, "the script itself")
}

// TestScriptsDigest: the digest covers the code that a call of the tool runs, and nothing else.
func TestScriptsDigest(t *testing.T) {
	content := func(change ...string) map[string]string {
		files := map[string]string{
			"a.py": "def run(a): pass\n", "b.py": "def run(a): pass\n", "lib/x.py": "x = 1\n", "beside.txt": "not the tool's",
			"x-1-py3-none-any.whl": wheel(t, map[string]string{"x/__init__.py": "", "x-1.data/purelib/y.py": "", "x-1.data/scripts/z": "z"}),
		}
		for i := 0; i+1 < len(change); i += 2 {
			files[change[i]] = change[i+1]
		}
		return files
	}
	digest := func(module string, change ...string) string {
		info, err := InspectModule(scriptIn(t, module, content(change...)))
		require.NoError(t, err)
		assert.Equal(t, "CPython 3.12.0", info.Interpreter)
		return info.SHA256
	}
	const module = "{script: a.py, packages: [lib, x-1-py3-none-any.whl]}"
	first := digest(module)
	assert.Equal(t, first, digest(module), "in another folder")
	assert.Equal(t, first, digest(module, "beside.txt", "changed"))
	assert.Equal(t, first, digest(module, "lib/__pycache__/x.pyc", "junk"))
	seen := map[string]string{first: "first"}
	for what, other := range map[string]string{
		"script":          digest(module, "a.py", "def run(a): return 1\n"),
		"script's name":   digest("{script: b.py, packages: [lib, x-1-py3-none-any.whl]}"),
		"package":         digest(module, "lib/x.py", "x = 2\n"),
		"package's files": digest(module, "lib/y.py", ""),
		"fewer packages":  digest("{script: a.py, packages: [lib]}"),
		"wheel":           digest(module, "x-1-py3-none-any.whl", wheel(t, map[string]string{"x/__init__.py": "1"})),
		"sample":          digest("{script: a.py, packages: [lib, x-1-py3-none-any.whl], sample: {}}"),
		"other sample":    digest("{script: a.py, packages: [lib, x-1-py3-none-any.whl], sample: {a: 1}}"),
	} {
		assert.Empty(t, seen[other], what)
		seen[other] = what
	}
	old := filepath.Join(t.TempDir(), "a.py")
	require.NoError(t, os.WriteFile(old, nil, 0o600))
	require.NoError(t, os.Chtimes(old, time.Unix(1, 0), time.Unix(1, 0)))
	assert.Equal(t, digest("{script: a.py}", "a.py", ""), digest("{script: a.py}", "a.py", ""))
}

// TestScriptsArePinned: a pin covers the whole tool.
func TestScriptsArePinned(t *testing.T) {
	content := map[string]string{"a.py": "def run(a): pass\n"}
	info, err := InspectModule(scriptIn(t, "{script: a.py}", content))
	require.NoError(t, err)
	pinned := "{script: a.py, sha256: " + info.SHA256 + "}"
	require.ErrorIs(t, load(t, shared, scriptIn(t, pinned, content), manifests.Grants{}).Prepare(t.Context()), ErrInterpreter, "control")
	content["a.py"] += "# changed\n"
	require.ErrorIs(t, load(t, shared, scriptIn(t, pinned, content), manifests.Grants{}).Prepare(t.Context()), ErrDigest)
}

// TestScriptsWithoutInterpreter: without its interpreter, a script tool is loaded and listed, and names the command to
// run.
func TestScriptsWithoutInterpreter(t *testing.T) {
	r := newRuntime(t, Options{Interpreters: t.TempDir()})
	for module, want := range map[string]string{
		"{script: a.py}":  `needs the interpreter CPython 3.12.0, which is not installed: run "caisson interpreters install python"`,
		"{script: a.mjs}": `needs the interpreter QuickJS-NG 0.14.0, which is not installed: run "caisson interpreters install javascript"`,
	} {
		loaded, err := r.Load(t.Context(), scriptIn(t, module, map[string]string{"a.py": "", "a.mjs": ""}), manifests.Grants{})
		require.NoError(t, err)
		assert.Equal(t, want, loaded.Unavailable())
		outcome, err := invoke(t, loaded, "{}")
		require.Error(t, err)
		assert.Equal(t, tool.Denied, outcome.Result.Kind)
		assert.Equal(t, "the tool is unavailable: "+want, outcome.Result.Error)
		require.ErrorIs(t, loaded.Prepare(t.Context()), ErrInterpreter)
		id, err := loaded.Identity(t.Context())
		require.NoError(t, err)
		assert.Len(t, id, 64)
	}
}

// TestAttackSwappedInterpreter: an interpreter that was changed runs nothing.
func TestAttackSwappedInterpreter(t *testing.T) {
	dir := t.TempDir()
	i, found := interpreter.For("python")
	require.True(t, found)
	require.NoError(t, os.WriteFile(filepath.Join(dir, i.File()), readGuest(t, probe), 0o600))
	r := newRuntime(t, Options{Interpreters: dir})
	loaded, err := r.Load(t.Context(), scriptIn(t, "{script: a.py}", map[string]string{"a.py": ""}), manifests.Grants{})
	require.NoError(t, err)
	assert.Empty(t, loaded.Unavailable(), "control: it is there")
	outcome, err := invoke(t, loaded, "{}")
	require.ErrorIs(t, err, interpreter.ErrDigest)
	assert.False(t, outcome.Result.Success)
}

// TestOwnFilesHaveTheirPlace: a manifest cannot request the folder in which a script's own files are.
func TestOwnFilesHaveTheirPlace(t *testing.T) {
	m := manifestIn(t, filepath.Dir(scriptIn(t, "{script: a.py}", map[string]string{"a.py": ""}).File), "script", "module: {script: a.py}\npermissions: {files: [{path: /caisson/tool}]}\n")
	_, err := shared.Load(t.Context(), m, manifests.Grants{})
	require.ErrorContains(t, err, "constant files of script at /caisson overlap its files at /caisson/tool")
}

// TestAttackManyPackages: the unpacked size of the packages of all tools is bounded. Equal files count once, and until
// the last tool that has them is closed. The control is a runtime with more room.
func TestAttackManyPackages(t *testing.T) {
	const size = 1 << 20
	module := "{script: a.py, packages: [x-1-py3-none-any.whl]}"
	content := func(script, zeros string) map[string]string {
		return map[string]string{"a.py": script, "x-1-py3-none-any.whl": wheel(t, map[string]string{"x/__init__.py": "", "x/data": strings.Repeat(zeros, size)})}
	}
	for limit, fits := range map[manifests.Bytes]bool{3 * size / 2: false, 3 * size: true} {
		r := newRuntime(t, Options{Interpreters: t.TempDir(), Memory: Memory{Scripts: limit}})
		loadOne := func(script, zeros string) *Tool {
			loaded, err := r.Load(t.Context(), scriptIn(t, module, content(script, zeros)), manifests.Grants{})
			require.NoError(t, err)
			return loaded
		}
		const needs = "needs the interpreter"
		var equal []*Tool
		for n := range 12 {
			one := loadOne(fmt.Sprintf("x = %d", n), "\x00")
			assert.Contains(t, one.Unavailable(), needs)
			equal = append(equal, one)
		}
		other := loadOne("", "\x01")
		if fits {
			assert.Contains(t, other.Unavailable(), needs, "control")
			continue
		}
		want := fmt.Sprintf("would have more than %d bytes together, with equal files counted once", int64(limit))
		assert.Contains(t, other.Unavailable(), want)
		_, err := other.Identity(t.Context())
		require.ErrorIs(t, err, ErrModule)
		_, err = r.Load(t.Context(), manifestIn(t, filepath.Dir(equal[0].Manifest().File), "bad", "module: "+module+"\npermissions: {files: [{path: /caisson}]}\n"), manifests.Grants{})
		require.Error(t, err, "it releases its files")
		for _, one := range equal {
			assert.Contains(t, loadOne("", "\x01").Unavailable(), want)
			for range 2 {
				require.NoError(t, one.Close(t.Context()))
			}
		}
		assert.Contains(t, loadOne("", "\x01").Unavailable(), needs)
	}
	_, err := New(t.Context(), Options{Memory: Memory{Scripts: -1}})
	assert.ErrorContains(t, err, "negative")
}
