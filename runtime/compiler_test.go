package runtime

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"

	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// quadratic is a WASI command that does nothing, but has a br_table of so many labels that
// compiling it takes time with the square of their number.
func quadratic() []byte {
	const labels = 50_001
	body := []byte{0, 0x41, 0, 0x0e} // no locals, i32.const 0, br_table
	body = append(binary.AppendUvarint(body, labels-1), make([]byte, labels)...)
	body = append(body, 0x0b)
	code := append(binary.AppendUvarint([]byte{1}, uint64(len(body))), body...)
	module := []byte("\x00asm\x01\x00\x00\x00" + // header
		"\x01\x04\x01\x60\x00\x00" + // one type, without parameters and results
		"\x03\x02\x01\x00" + // one function of it
		"\x07\x0a\x01\x06_start\x00\x00") // exported
	return append(binary.AppendUvarint(append(module, 10), uint64(len(code))), code...)
}

func TestTrustedModules(t *testing.T) {
	source := quadratic()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "guest.wasm"), source, 0o600))
	m := manifestIn(t, dir, "")
	cache := filepath.Join(t.TempDir(), "cache")

	err := load(t, newRuntime(t, Options{CacheDir: cache}), m, manifests.Grants{}).Prepare(t.Context())
	require.ErrorIs(t, err, ErrModule)
	require.ErrorIs(t, err, wasm.ErrLimit)

	trusting := Options{CacheDir: cache, TrustedModules: []string{engine.DigestOf(source).String()}}
	outcome, err := invoke(t, load(t, newRuntime(t, trusting), m, manifests.Grants{}), "{}")
	require.NoError(t, err, "control: it is trusted")
	assert.True(t, outcome.Result.Success)
}

func TestTrustedModulesAreDigests(t *testing.T) {
	right := strings.Repeat("0a", 32)
	for _, wrong := range []string{"", "0a", right + "0a", strings.Repeat("x", 64), "sha256:" + right} {
		_, err := New(t.Context(), Options{TrustedModules: []string{right, wrong}})
		assert.ErrorContains(t, err, "64 hex digits", wrong)
	}
	_, err := New(t.Context(), Options{CacheDir: filepath.Join(t.TempDir(), "cache"), CacheBytes: -1})
	assert.ErrorContains(t, err, "negative")
	newRuntime(t, Options{TrustedModules: []string{right}})
}
