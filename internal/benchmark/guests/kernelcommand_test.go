package guests_test

import (
	"bytes"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
)

func TestKernelCommands(t *testing.T) {
	for _, group := range groups() {
		for _, language := range []guests.Language{guests.C, guests.Rust, guests.Go} {
			t.Run(group.name+"/"+string(language), func(t *testing.T) {
				source, err := group.command(t.Context(), language, t.TempDir())
				require.NoError(t, err)
				runtime := newRuntime(t, interpreter())
				module, err := runtime.CompileModule(t.Context(), source)
				require.NoError(t, err)
				for _, kernel := range group.kernels {
					const size = 3
					output, code := runKernel(t, runtime, module, kernel.Name, strconv.Itoa(size))
					require.Zero(t, code, kernel.Name)
					var checksum, nanoseconds uint64
					_, err := fmt.Sscanf(output, "%16x %d\n", &checksum, &nanoseconds)
					require.NoError(t, err, output)
					require.Equal(t, kernel.Native(size), checksum, kernel.Name)
					require.Positive(t, nanoseconds, kernel.Name)
				}
				known := group.kernels[0].Name
				for _, wrong := range [][]string{nil, {known}, {"no such kernel", "1"}, {known, "many"}, {known, "4294967297"}} {
					output, code := runKernel(t, runtime, module, wrong...)
					require.NotZero(t, code, wrong)
					require.Empty(t, output, wrong)
				}
			})
		}
	}
}

// runKernel runs the command with arguments and returns its output and exit code.
func runKernel(t *testing.T, runtime wazero.Runtime, module wazero.CompiledModule, args ...string) (output string, code uint32) {
	t.Helper()
	var stdout bytes.Buffer
	config := wazero.NewModuleConfig().WithName("").WithArgs(append([]string{"kernelcommand"}, args...)...).
		WithStdout(&stdout).WithSysNanotime()
	instance, err := runtime.InstantiateModule(t.Context(), module, config)
	var exit *sys.ExitError
	if err == nil {
		require.NoError(t, instance.Close(t.Context()))
		return stdout.String(), 0
	}
	require.ErrorAs(t, err, &exit)
	return stdout.String(), exit.ExitCode()
}
