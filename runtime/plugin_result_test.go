package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// sets returns the tool of a plug-in whose one function calls alloc for some bytes, writes text into that
// block, sets the bytes as its output, and returns 0.
func sets(t *testing.T, r *Runtime, length int, text, more string) *Tool {
	t.Helper()
	const env = "extism:host/env"
	body := "\x01\x01\x7e\x42" + signed(length) + "\x10\x00\x21\x00" // block = alloc(length)
	for i := range len(text) {
		body += "\x20\x00\x42" + signed(i) + "\x7c\x41" + signed(int(text[i])) + "\x10\x01" // store_u8(block+i, text[i])
	}
	body += "\x20\x00\x42" + signed(length) + "\x10\x02\x41\x00\x0b" // output_set(block, length)
	module := magic + section(1, "\x04\x60\x00\x01\x7f\x60\x01\x7e\x01\x7e\x60\x02\x7e\x7f\x00\x60\x02\x7e\x7e\x00") +
		section(2, "\x03"+vector(env)+vector("alloc")+"\x00\x01"+vector(env)+vector("store_u8")+"\x00\x02"+vector(env)+vector("output_set")+"\x00\x03") +
		section(3, "\x01\x00") + section(7, "\x01"+vector("call")+"\x00\x03") + section(10, "\x01"+vector(body))
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plugin.wasm"), []byte(module), 0o600))
	m, err := manifests.Parse(filepath.Join(dir, "tool.yaml"), []byte("schema: caisson/v1\nname: plugin\ndescription: A plug-in.\nmodule: {path: plugin.wasm, abi: extism}\n"+more))
	require.NoError(t, err)
	return load(t, r, m, manifests.Grants{})
}

// TestBytesThatAreNoText: a result is text. Of an output that is none, the log says how much the result
// does not have.
func TestBytesThatAreNoText(t *testing.T) {
	r := newRuntime(t, Options{})
	const left = "[left out of the result: bytes that are not UTF-8 (%), with U+FFFD for each run of them]\n"
	for output, want := range map[string]struct{ output, bytes string }{
		"a text: ä\uFFFD\x00":           {"a text: ä\uFFFD\x00", ""}, // the control
		"\xff":                          {"\uFFFD", "1"},
		"\xff\xfea\x00\xffA\xc3":        {"\uFFFDa\x00\uFFFDA\uFFFD", "4"},
		"\xed\xa0\x80":                  {"\uFFFD", "3"}, // half of a surrogate pair
		`{"name": "caf` + "\xe9" + `"}`: {`{"name": "caf` + "\uFFFD" + `"}`, "1"},
	} {
		o := callPlugin(t, sets(t, r, len(output), output, ""), "")
		require.True(t, o.Result.Success, o.Result.Error)
		assert.Equal(t, want.output, o.Result.Output)
		log := ""
		if want.bytes != "" {
			log = strings.Replace(left, "%", want.bytes, 1)
		}
		assert.Equal(t, log, o.Log, "%q", output)
	}
	both := callPlugin(t, sets(t, r, 0, "", ""), "") // nothing at all
	assert.Empty(t, both.Log)
	object := `{"success": true, "output": "` + "\xff" + `", "data": 1, "value": 2, "content": [{"type": "text", "text": "a", "mimeType": "b"}]}`
	two := callPlugin(t, sets(t, r, len(object), object, ""), "")
	require.True(t, two.Result.Success, two.Result.Error)
	assert.Contains(t, two.Log, `; bytes that are not UTF-8 (1), with U+FFFD`)
	assert.Equal(t, 1, strings.Count(two.Log, "[left out of the result: "), two.Log)
}

// TestPluginReturnsANumber: any number but 0 is a failure, and the message has it as the plug-in does.
func TestPluginReturnsANumber(t *testing.T) {
	r := newRuntime(t, Options{})
	for name, c := range map[string]struct {
		f      exported
		number string // empty for a success
	}{
		"0":                      {exported{"run", "\x00\x01\x7f", "\x41\x00"}, ""},
		"a long 0":               {exported{"run", "\x00\x01\x7e", "\x42\x00"}, ""},
		"-1":                     {exported{"run", "\x00\x01\x7f", "\x41\x7f"}, "-1"},
		"a long -1":              {exported{"run", "\x00\x01\x7e", "\x42\x7f"}, "-1"},
		"2^32":                   {exported{"run", "\x00\x01\x7e", "\x42" + signed(1<<32)}, "4294967296"},
		"the lowest of all":      {exported{"run", "\x00\x01\x7e", "\x42" + signed(-1<<63)}, "-9223372036854775808"},
		"the highest of 32 bits": {exported{"run", "\x00\x01\x7f", "\x41" + signed(1<<31-1)}, "2147483647"},
	} {
		result := callPlugin(t, pluginOf(t, r, c.f), "").Result
		if c.number == "" {
			assert.True(t, result.Success, name)
			continue
		}
		assert.Equal(t, tool.ToolFailed, result.Kind, name)
		assert.Equal(t, "the tool returned "+c.number, result.Error, name)
	}
}

// TestPluginThatGetsNoBlock: plug-ins that do not check the result of alloc continue with offset 0. They need more
// memory, and the message says so.
func TestPluginThatGetsNoBlock(t *testing.T) {
	r := newRuntime(t, Options{})
	for _, text := range []string{"", "a"} { // output_set and store_u8 end it
		result := callPlugin(t, sets(t, r, 64<<20, text, "limits: {memory: 1MiB}\n"), "").Result
		assert.Equal(t, tool.Memory, result.Kind, result.Error)
		assert.Contains(t, result.Error, "needs more memory than its limit of 1MiB")
	}
	control := callPlugin(t, sets(t, r, 0, "a", "limits: {memory: 1MiB}\n"), "").Result // alloc(0) is 0, too
	assert.Equal(t, tool.Trap, control.Kind)
	assert.Contains(t, control.Error, "it passed the offset 0 to store_u8")
}

// TestAttackSecretAtTheEndOfAnError: an error is cut at the limit of outputs. A part of a secret at the cut would not
// be found. The control is a tool without the secret.
func TestAttackSecretAtTheEndOfAnError(t *testing.T) {
	const asks = "permissions: {network: [{host: api.example.com}], secrets: [{name: KEY, host: api.example.com, header: X-Key}]}\n"
	source, err := os.ReadFile("../internal/plugins/c/plugin.wasm")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plugin.wasm"), source, 0o600))
	text := "schema: caisson/v1\nname: plugin\ndescription: A plug-in.\nparameters: {properties: {input: {type: string}}}\n" +
		`module: {path: plugin.wasm, abi: extism, stdin: "{input}", entry: fail}` + "\nlimits: {output: 1KiB}\n"
	part := secretValue[:len(secretValue)-1]
	said := strings.Repeat("-", 1<<10-len(part)) + secretValue + " and more"
	for more, holds := range map[string]bool{asks: false, "": true} {
		m, err := manifests.Parse(filepath.Join(dir, "tool.yaml"), []byte(text+more))
		require.NoError(t, err)
		r := newRuntime(t, Options{LookupEnv: func(string) (string, bool) { return secretValue, true }})
		loaded := load(t, r, m, manifests.Grants{Secrets: []manifests.SecretGrant{{Name: "KEY", Host: "api.example.com", Schemes: []string{"https"}, From: manifests.SecretSource{Env: "KEY"}}}})
		told := callPlugin(t, loaded, said).Result.Error
		assert.Equal(t, holds, strings.HasSuffix(told, part), told)
		assert.NotContains(t, told, "and more", "beyond the limit")
		assert.Less(t, len(told), 1<<10+64)
	}
}

// TestInputOfAPluginWithoutRoom: blocks that a plug-in has made before it reads its input may fill the
// kernel's memory to the last byte.
func TestInputOfAPluginWithoutRoom(t *testing.T) {
	const (
		env = "extism:host/env"
		// p = alloc(16); p = alloc(16 + (memory_bytes()-p-16 & 16)); do p = alloc(16) while p+16 < memory_bytes(). A
		// block of 16 bytes takes 32.
		fill = "\x42\x10\x10\x00\x21\x00" + "\x42\x10\x10\x01\x20\x00\x7d\x42\x10\x7d\x42\x10\x83\x7c\x10\x00\x21\x00" +
			"\x03\x40\x42\x10\x10\x00\x21\x00\x20\x00\x42\x10\x7c\x10\x01\x54\x0d\x00\x0b"
		full  = "\x20\x00\x42\x10\x7c\x10\x01\x52\x04\x40\x00\x0b" // if p+16 != memory_bytes() trap
		freed = "\x20\x00\x10\x05"                                 // free(p), to make room for 16 bytes
		echo  = "\x10\x03\x10\x02\x10\x04\x41\x00\x0b"             // output_set(input_offset(), input_length()); 0
	)
	r := newRuntime(t, Options{})
	for _, before := range []string{fill + full, fill + full + freed, ""} { // the last is the control
		module := magic + section(1, "\x05\x60\x01\x7e\x01\x7e\x60\x00\x01\x7e\x60\x02\x7e\x7e\x00\x60\x00\x01\x7f\x60\x01\x7e\x00") +
			section(2, "\x06"+vector(env)+vector("alloc")+"\x00\x00"+vector(env)+vector("memory_bytes")+"\x00\x01"+
				vector(env)+vector("input_length")+"\x00\x01"+vector(env)+vector("input_offset")+"\x00\x01"+vector(env)+vector("output_set")+"\x00\x02"+vector(env)+vector("free")+"\x00\x04") +
			section(3, "\x01\x03") + section(7, "\x01"+vector("call")+"\x00\x06") + section(10, "\x01"+vector("\x01\x01\x7e"+before+echo))
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "plugin.wasm"), []byte(module), 0o600))
		m, err := manifests.Parse(filepath.Join(dir, "tool.yaml"), []byte("schema: caisson/v1\nname: plugin\ndescription: A plug-in.\n"+
			"parameters: {properties: {input: {type: string}}}\nmodule: {path: plugin.wasm, abi: extism, stdin: \"{input}\"}\n"))
		require.NoError(t, err)
		loaded := load(t, r, m, manifests.Grants{})
		for _, input := range []string{"", "a", strings.Repeat("b", 15), strings.Repeat("b", 16), strings.Repeat("b", 17), strings.Repeat("c", 100_000)} {
			result := callPlugin(t, loaded, input).Result
			require.True(t, result.Success, result.Error)
			assert.Equal(t, input, result.Output)
		}
	}
}
