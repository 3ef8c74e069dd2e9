package interpreter

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/hostfile"
)

// plain is the smallest module, and marked is one with a custom section.
var (
	plain  = []byte("\x00asm\x01\x00\x00\x00")
	marked = append(bytes.Clone(plain), "\x00\x03\x01xy"...)
)

func tiny(fetch func(ctx context.Context, dir string, run runner) (string, error)) Interpreter {
	return Interpreter{Language: "tiny", Name: "Tiny 1", SHA256: hexDigest(plain), fetched: hexDigest(marked), fetch: fetch}
}

// TestInstall: a fetched module is checked, stripped and stored, and any other file is refused.
func TestInstall(t *testing.T) {
	f := Folder(filepath.Join(t.TempDir(), "new", "folder"))
	writes := func(content []byte) Interpreter {
		return tiny(func(_ context.Context, dir string, _ runner) (string, error) {
			file := filepath.Join(dir, "module.wasm")
			return file, os.WriteFile(file, content, 0o600)
		})
	}
	i := writes(marked)
	assert.False(t, f.Has(i))
	_, err := f.Read(i)
	require.ErrorIs(t, err, ErrNotInstalled)
	require.NoError(t, f.Install(t.Context(), i, nil))
	assert.True(t, f.Has(i))
	module, err := f.Read(i)
	require.NoError(t, err)
	assert.Equal(t, plain, module)

	for name, wrong := range map[string][]byte{"other": append(bytes.Clone(marked), 0), "empty": {}, "text": []byte("text")} {
		err := f.Install(t.Context(), writes(wrong), nil)
		require.ErrorIs(t, err, ErrDigest, name)
	}
	file := filepath.Join(t.TempDir(), "stripped.wasm")
	require.NoError(t, os.WriteFile(file, plain, 0o600))
	require.NoError(t, f.InstallFile(i, file), "as another machine has it")
	require.Error(t, f.InstallFile(i, file+"x"))

	require.NoError(t, os.WriteFile(filepath.Join(string(f), i.File()), marked, 0o600))
	_, err = f.Read(i)
	require.ErrorIs(t, err, ErrDigest)
	require.ErrorContains(t, err, "was changed; install it again")
}

// TestAttackInstalledFiles: only a regular file of a module's size is read, and a link is not installed. The control is
// TestInstall.
func TestAttackInstalledFiles(t *testing.T) {
	i, f, dir := tiny(nil), Folder(t.TempDir()), t.TempDir()
	require.NoError(t, os.Chmod(string(f), 0o700))
	require.ErrorIs(t, f.InstallFile(i, os.DevNull), hostfile.ErrIrregular, "a device")
	require.ErrorIs(t, f.InstallFile(i, dir), hostfile.ErrIrregular)
	long := filepath.Join(dir, "long.wasm")
	require.NoError(t, os.WriteFile(long, nil, 0o600))
	require.NoError(t, os.Truncate(long, maxModule+1))
	require.ErrorContains(t, f.InstallFile(i, long), "long.wasm has more than 67108864 bytes, and is no interpreter")
	file := filepath.Join(dir, "module.wasm")
	require.NoError(t, os.WriteFile(file, plain, 0o600))
	require.NoError(t, os.Symlink(file, filepath.Join(string(f), i.File())))
	assert.False(t, f.Has(i), "a link")
	require.NoError(t, f.InstallFile(i, file))
	assert.True(t, f.Has(i))
	_, err := f.Read(i)
	require.NoError(t, err)
}

// TestFailedFetches: errors name the command and quote the end of its output.
func TestFailedFetches(t *testing.T) {
	f := Folder(t.TempDir())
	command := func(args ...string) Interpreter {
		return tiny(func(ctx context.Context, dir string, run runner) (string, error) {
			return "", run.in(ctx, dir, nil, args...)
		})
	}
	for want, args := range map[string][]string{
		"no-such-program is not installed":      {"no-such-program"},
		"go no-such-command: exit status 2\ngo": {"go", "no-such-command"},
	} {
		err := f.Install(t.Context(), command(args...), nil)
		require.ErrorIs(t, err, ErrFetch)
		assert.ErrorContains(t, err, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, f.Install(ctx, command("go", "version"), nil), context.Canceled)
	var shown []string
	require.NoError(t, runner{func(command string) { shown = append(shown, command) }}.in(t.Context(), t.TempDir(), nil, "go", "env", "GOOS", "GOARCH", "GOROOT", "GOPATH", "GOCACHE", "GOENV", "GOFLAGS"))
	assert.Equal(t, []string{"go env GOOS GOARCH GOROOT GOPATH GOCACHE GOENV …"}, shown)
}

func TestExtract(t *testing.T) {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for _, name := range []string{"package/other", "package/it"} {
		require.NoError(t, archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(name))}))
		_, err := archive.Write([]byte(name))
		require.NoError(t, err)
	}
	require.NoError(t, archive.Close())
	require.NoError(t, zipped.Close())
	dir := t.TempDir()
	file, to := filepath.Join(dir, "a.tgz"), filepath.Join(dir, "out")
	require.NoError(t, os.WriteFile(file, packed.Bytes(), 0o600))
	require.NoError(t, extract(file, "package/it", to))
	content, err := os.ReadFile(to)
	require.NoError(t, err)
	assert.Equal(t, "package/it", string(content))
	require.ErrorContains(t, extract(file, "package/none", to), "package/none: EOF")
	require.NoError(t, os.WriteFile(file, packed.Bytes()[:packed.Len()/2], 0o600))
	require.Error(t, extract(file, "package/it", to))
}

func TestLanguages(t *testing.T) {
	for _, i := range All() {
		found, ok := For(i.Language)
		assert.True(t, ok)
		assert.Equal(t, i.Name, found.Name)
		assert.Len(t, i.SHA256, 64)
		assert.Len(t, i.fetched, 64)
		for _, digest := range []string{i.SHA256, i.fetched} {
			recognised, ok := Recognise(digest)
			assert.True(t, ok)
			assert.Equal(t, i.Name, recognised.Name)
		}
	}
	_, ok := For("ruby")
	assert.False(t, ok)
	_, ok = Recognise("")
	assert.False(t, ok)
}
