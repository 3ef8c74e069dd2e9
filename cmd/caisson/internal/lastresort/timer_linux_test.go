//go:build linux && (amd64 || arm64)

package lastresort

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
)

// processes are the programs that tests start.
var processes = map[string]func(*Timer){
	// stuck waits for a garbage collection that waits for a loop: without preemption, no Go code runs any
	// more.
	"stuck": func(t *Timer) {
		t.Arm(time.Now().Add(500*time.Millisecond), "said\n")
		stop()
	},
	"stuck without a timer": func(*Timer) { stop() },
	"stuck and disarmed": func(t *Timer) {
		t.Arm(time.Now().Add(500*time.Millisecond), "said\n")
		t.Disarm()
		stop()
	},
	"rearmed": func(t *Timer) {
		for range 100 {
			t.Arm(time.Now().Add(100*time.Millisecond), "said\n")
			time.Sleep(20 * time.Millisecond)
		}
		t.Disarm()
	},
	"disarmed at the time": func(t *Timer) {
		for range 200 {
			t.Arm(time.Now().Add(time.Millisecond), "said\n")
			time.Sleep(time.Millisecond)
			t.Disarm()
		}
		time.Sleep(2 * Grace)
	},
	"signalled": func(t *Timer) {
		t.Arm(time.Now().Add(time.Minute), "said\n")
		for range 10 {
			_ = syscall.Kill(os.Getpid(), signal)
		}
		time.Sleep(time.Second)
	},
	"suspended": func(t *Timer) {
		for range 20 {
			t.Arm(time.Now().Add(200*time.Millisecond), "said\n")
			fmt.Println("armed")
			time.Sleep(100 * time.Millisecond)
		}
	},
}

// stop never returns, and keeps all other Go code in the process from running.
func stop() {
	go func() {
		for n := uint64(1); n != 0; n = n*6364136223846793005 + 1442695040888963407 {
			continue // centuries
		}
	}()
	time.Sleep(100 * time.Millisecond)
	goruntime.GC()
	os.Exit(9) // the collection ended
}

const processName = "LASTRESORT_TEST"

func TestMain(m *testing.M) {
	if process := processes[os.Getenv(processName)]; process != nil {
		timer, err := New()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(8)
		}
		process(timer)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func command(t *testing.T, process string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), processName+"="+process, "GODEBUG=asyncpreemptoff=1", "GOMAXPROCS=2")
	return c
}

// end waits for the process, or kills it after the time. Its code is -1 then.
func end(t *testing.T, c *exec.Cmd, after time.Duration) (code int, took time.Duration) {
	t.Helper()
	start := time.Now()
	killer := time.AfterFunc(after, func() { _ = c.Process.Kill() })
	defer killer.Stop()
	err := c.Wait()
	var exit *exec.ExitError
	require.True(t, err == nil || errors.As(err, &exit), err)
	return c.ProcessState.ExitCode(), time.Since(start)
}

func TestTimerEndsWhatStandsStill(t *testing.T) {
	for _, process := range []string{"stuck without a timer", "stuck and disarmed"} {
		t.Run("control: "+process, func(t *testing.T) {
			c := command(t, process)
			require.NoError(t, c.Start())
			code, _ := end(t, c, 1500*time.Millisecond)
			assert.Equal(t, -1, code, "it had to be killed")
		})
	}
	c := command(t, "stuck")
	var out bytes.Buffer
	c.Stderr = &out
	require.NoError(t, c.Start())
	code, took := end(t, c, 10*time.Second)
	assert.Equal(t, ExitCode, code)
	assert.Equal(t, "said\n", out.String())
	assert.Less(t, took, 2*time.Second)
	assert.Greater(t, took, 500*time.Millisecond)
}

// TestTimerWaitsForNobody: a full pipe does not keep the process from ending.
func TestTimerWaitsForNobody(t *testing.T) {
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer reader.Close()
	require.NoError(t, writer.SetWriteDeadline(time.Now().Add(200*time.Millisecond)))
	for err == nil {
		_, err = writer.Write(make([]byte, 1<<10))
	}
	c := command(t, "stuck")
	c.Stderr = writer
	require.NoError(t, c.Start())
	require.NoError(t, writer.Close())
	code, took := end(t, c, 10*time.Second)
	assert.Equal(t, ExitCode, code)
	assert.Less(t, took, 2*time.Second)
}

func TestTimerLetsTheLivingLive(t *testing.T) {
	for _, process := range []string{"rearmed", "disarmed at the time", "signalled"} {
		t.Run(process, func(t *testing.T) {
			c := command(t, process)
			out, err := c.CombinedOutput()
			require.NoError(t, err, string(out))
			assert.Empty(t, string(out))
		})
	}
}

// TestTimerKnowsSuspension: a process that was suspended for long continues.
func TestTimerKnowsSuspension(t *testing.T) {
	c := command(t, "suspended")
	stdout := noerr.Get(c.StdoutPipe())(t)
	require.NoError(t, c.Start())
	noerr.Get(stdout.Read(make([]byte, 6)))(t)
	require.NoError(t, c.Process.Signal(syscall.SIGSTOP))
	time.Sleep(2 * time.Second)
	require.NoError(t, c.Process.Signal(syscall.SIGCONT))
	code, _ := end(t, c, 10*time.Second)
	assert.Zero(t, code)
}

func TestOneTimer(t *testing.T) {
	noerr.Get(New())(t)
	require.ErrorIs(t, noerr.Error(New()), ErrUnavailable)
}
