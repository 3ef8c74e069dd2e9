package guests_test

import (
	"bytes"
	"crypto/rand"
	"io"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/internal/benchmark/guests/go/handler"
	"github.com/caisson-run/caisson/internal/testsize"
)

func TestCommands(t *testing.T) {
	// A program whose start-up asks for random bytes is not snapshotted, so the Go tools
	// must ask for no more than the Go runtime does by itself.
	bare := randomBytesOfGoRuntime(t)
	require.Positive(t, bare)
	for language, random := range map[guests.Language]int{guests.C: 0, guests.Rust: 0, guests.Go: bare, guests.GoWarm: bare} {
		t.Run(string(language), func(t *testing.T) {
			command := compileCommand(t, language)
			t.Run("answers", func(t *testing.T) { answers(t, command) })
			t.Run("refuses", func(t *testing.T) { refuses(t, command) })
			t.Run("random bytes", func(t *testing.T) {
				require.LessOrEqual(t, command.randomBytes(t), random)
			})
		})
	}
}

func answers(t *testing.T, command command) {
	for _, length := range []int{0, 100, testsize.Of(4<<10, 64<<10)} {
		call := guests.NewCall(length)
		output, err := command.run(t, call.Input)
		require.NoError(t, err)
		require.NoError(t, call.Check(output))
	}
	for name, input := range map[string]string{
		"escapes":    `{"nums":[-9223372036854775808, 9223372036854775807],"text":"a\"\\\n\u0041\ud83d\ude00"}`,
		"other keys": ` { "more" : [{"a":[1.5e-3,true,null]},"\"]"], "text" : "a\"\\\nA😀" , "nums" : [ -1 ] } `,
	} {
		output, err := command.run(t, []byte(input))
		require.NoError(t, err, name)
		require.JSONEq(t, `{"upper":"A\"\\\nA😀","sum":-1,"calls":1}`, string(output), name)
	}
}

func refuses(t *testing.T, command command) {
	for _, input := range []string{
		"", "null5", `[`, `{`, `{"text":"a","nums":[1]`, `{"text":1,"nums":[1]}`, `{"text":"a","nums":[1.5]}`,
		`{"text":"a","nums":[9223372036854775808]}`, `{"text":"a","nums":[01]}`, `{"text":"a","nums":[1]} x`,
	} {
		output, err := command.run(t, []byte(input))
		var exit *sys.ExitError
		require.ErrorAs(t, err, &exit, input)
		require.Equal(t, uint32(1), exit.ExitCode(), input)
		require.Empty(t, output, input)
	}
}

func TestNativeCommandAnswers(t *testing.T) {
	program, err := guests.NativeCommand(t.Context(), t.TempDir())
	require.NoError(t, err)
	call := guests.NewCall(100)
	command := exec.CommandContext(t.Context(), program)
	command.Stdin = bytes.NewReader(call.Input)
	output, err := command.Output()
	require.NoError(t, err)
	require.NoError(t, call.Check(output))
}

func TestCheckSeesWhatAnEarlierCallLeft(t *testing.T) {
	var tool handler.Handler
	call := guests.NewCall(100)
	require.Len(t, call.Input, 100)
	output, err := tool.Handle(call.Input)
	require.NoError(t, err)
	require.NoError(t, call.Check(output))
	output, err = tool.Handle(call.Input)
	require.NoError(t, err)
	require.ErrorIs(t, call.Check(output), guests.ErrAnswer)
	for _, wrong := range []string{"", `{"upper":"","sum":1000,"calls":1}`, `{"calls":1}`} {
		require.ErrorIs(t, call.Check([]byte(wrong)), guests.ErrAnswer, wrong)
	}
}

// command is a compiled command.
type command struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
}

func compileCommand(t *testing.T, language guests.Language) command {
	t.Helper()
	source, err := guests.Command(t.Context(), language, t.TempDir())
	require.NoError(t, err)
	runtime := newRuntime(t, interpreter())
	module, err := runtime.CompileModule(t.Context(), source)
	require.NoError(t, err)
	return command{runtime, module}
}

// run answers one call in a fresh instance.
func (c command) run(t *testing.T, input []byte) ([]byte, error) {
	t.Helper()
	var output bytes.Buffer
	config := wazero.NewModuleConfig().WithName("").WithStdin(bytes.NewReader(input)).WithStdout(&output)
	instance, err := c.runtime.InstantiateModule(t.Context(), c.module, config)
	if err != nil {
		return output.Bytes(), err
	}
	return output.Bytes(), instance.Close(t.Context())
}

// randomBytes says how many random bytes one call asks for.
func (c command) randomBytes(t *testing.T) int {
	t.Helper()
	var source counter
	input := bytes.NewReader(guests.NewCall(100).Input)
	config := wazero.NewModuleConfig().WithName("").WithStdin(input).WithRandSource(&source)
	instance, err := c.runtime.InstantiateModule(t.Context(), c.module, config)
	require.NoError(t, err)
	require.NoError(t, instance.Close(t.Context()))
	return source.read
}

// randomBytesOfGoRuntime says how many random bytes a Go program asks for that starts
// and does nothing.
func randomBytesOfGoRuntime(t *testing.T) int {
	t.Helper()
	module, err := guests.Kernels(t.Context(), guests.Go, t.TempDir())
	require.NoError(t, err)
	var source counter
	config := wazero.NewModuleConfig().WithStartFunctions("_initialize").WithRandSource(&source)
	_, err = newRuntime(t, interpreter()).InstantiateWithConfig(t.Context(), module, config)
	require.NoError(t, err)
	return source.read
}

// counter counts the random bytes that were read through it.
type counter struct{ read int }

func (c *counter) Read(into []byte) (int, error) {
	n, err := io.ReadFull(rand.Reader, into)
	c.read += n
	return n, err
}
