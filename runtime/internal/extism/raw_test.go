package extism_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	sdk "github.com/extism/go-sdk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/plugins"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/extism"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
)

// said is the result of a plug-in's call.
type said struct {
	output, failure string
	code            uint32
	trap            string // why it crashed; empty if it did not
}

// String leaves out the middle of long texts.
func (s said) String() string {
	return fmt.Sprintf("output %s, error %s, code %d, trap %q", brief(s.output), brief(s.failure), s.code, s.trap)
}

func brief(text string) string {
	if len(text) <= 80 {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q … %q (%d bytes)", text[:40], text[len(text)-40:], len(text))
}

// host calls functions of a plug-in.
type host func(function string, input []byte) said

// ours returns a plug-in on the kernel. Each call has its own instance.
func ours(t *testing.T, cache string, source []byte) host {
	t.Helper()
	e, err := engine.New(t.Context(), engine.Options{CacheDir: cache, Functions: wasi.Functions(), Kernel: extism.Kernel(nil)})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Close(context.WithoutCancel(t.Context()))) })
	module, err := e.Compile(t.Context(), source)
	require.NoError(t, err)
	var starts []engine.Initializer
	if _, found := module.Description().ExportedFunction("_initialize"); found {
		starts = []engine.Initializer{{Function: "_initialize"}}
	}
	return func(function string, input []byte) said {
		var output bytes.Buffer
		session := &extism.Session{Input: input, Output: &output, MaxError: 64 << 20, MaxVariables: 1 << 20}
		system := &wasi.System{
			Args: []string{"plugin"}, Stdout: &wasi.Output{Limit: 1 << 20}, Stderr: &wasi.Output{Limit: 1 << 20},
			Random: rand.NewChaCha8([32]byte{}), Now: time.Now, Started: time.Now(),
		}
		var code uint64
		_, err := module.Run(wasi.With(extism.With(t.Context(), session), system),
			engine.Run{Initialize: starts, Function: function, Result: &code, MemoryLimit: 512 << 20})
		if failure, ok := errors.AsType[*engine.Error](err); ok && errors.Is(err, engine.ErrTrap) {
			return said{trap: failure.Reason}
		}
		require.NoError(t, err, function)
		return said{output.String(), string(session.Error), uint32(code), ""}
	}
}

// theirs returns a plug-in on go-sdk. All calls share an instance.
func theirs(t *testing.T, source []byte) host {
	t.Helper()
	plugin, err := sdk.NewCompiledPlugin(t.Context(), sdk.Manifest{Wasm: []sdk.Wasm{sdk.WasmData{Data: source}}},
		sdk.PluginConfig{EnableWasi: true}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, plugin.Close(context.WithoutCancel(t.Context()))) })
	instance, err := plugin.Instance(t.Context(), sdk.PluginInstanceConfig{})
	require.NoError(t, err)
	return func(function string, input []byte) said {
		code, output, err := instance.CallWithContext(t.Context(), function, input)
		if err == nil {
			return said{string(output), "", code, ""}
		}
		if reason, crashed := strings.CutPrefix(err.Error(), "wasm error: "); crashed {
			reason, _, _ = strings.Cut(reason, "\n")
			return said{trap: reason}
		}
		set := instance.GetErrorWithContext(t.Context())
		require.Equal(t, set, err.Error(), function) // it has not crashed
		return said{"", set, code, ""}
	}
}

// inputs are bytes of a length that are text, nearly text, and anything but that.
func inputs(random *rand.Rand, length int) map[string][]byte {
	fill := func(next func(i int) byte) []byte {
		input := make([]byte, length)
		for i := range input {
			input[i] = next(i)
		}
		return input
	}
	const text = "Grüße, 世界 😀 aeiou\x00"
	return map[string][]byte{
		"random":          fill(func(int) byte { return byte(random.Uint32()) }),
		"zeros":           make([]byte, length),
		"the highest":     fill(func(int) byte { return 0xff }),
		"text, cut":       fill(func(i int) byte { return text[i%len(text)] }),
		"text with flaws": fill(func(i int) byte { return text[i%len(text)] ^ byte(1<<random.IntN(8)*(random.IntN(50)/49)) }),
		"followers alone": fill(func(int) byte { return 0x80 | byte(random.IntN(64)) }),
	}
}

// longestFailure is the maximum length of the errors of the plug-in in AssemblyScript. go-sdk takes long to set longer
// ones.
const longestFailure = 20_000

// lengths are those around the words and pages in which bytes are moved, and random ones up to the limit.
func lengths(random *rand.Rand, more, limit int) []int {
	all := []int{0, 1, 7, 8, 9, 15, 16, 17, 4096, 65535, 65536, 65537}
	for range more {
		all = append(all, random.IntN(1<<random.IntN(21)+1)%limit)
	}
	return append(all, limit)
}

// TestRawBytesAreTheSame: the input and output of a plug-in are bytes, not text. Both are the same as on go-sdk, in
// echoes, in functions that change the bytes, and in errors.
func TestRawBytesAreTheSame(t *testing.T) {
	_, folder, err := guests.CompiledCode()
	require.NoError(t, err)
	languages := []plugins.Language{plugins.C, plugins.Rust, plugins.RustWASI, plugins.AssemblyScript}
	if testsize.Slow { // it must be built
		languages = append(languages, plugins.Go)
	}
	for n, language := range languages {
		t.Run(string(language), func(t *testing.T) {
			source, err := plugins.Module(t.Context(), language, t.TempDir())
			require.NoError(t, err)
			here, there := ours(t, folder, source), theirs(t, source)
			random := rand.New(rand.NewPCG(25, uint64(n)))
			for _, length := range lengths(random, testsize.Of(3, 40), testsize.Of(70_000, 8<<20)) {
				for kind, input := range inputs(random, length) {
					what := fmt.Sprintf("%d bytes: %s", length, kind)
					same := func(function string) said {
						a, b := here(function, bytes.Clone(input)), there(function, bytes.Clone(input))
						if a != b {
							require.Fail(t, "the answers differ", "%s of %s\nours:   %s\ntheirs: %s", function, what, a, b)
						}
						return a
					}
					require.True(t, same("echo") == said{output: string(input)}, what)
					vowels := 0
					for _, b := range input {
						if strings.IndexByte("aeiouAEIOU", b) >= 0 {
							vowels++
						}
					}
					require.Equal(t, said{output: fmt.Sprintf(`{"count":%d}`, vowels)}, same("count_vowels"), what)
					same("reverse")
					if language != plugins.AssemblyScript || length <= longestFailure {
						same("fail")
					}
				}
			}
		})
	}
}
