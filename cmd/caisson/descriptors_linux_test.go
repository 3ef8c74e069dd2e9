package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
)

// TestAttackNoDescriptorForTokens: clients without a token hold connections that leave one descriptor, so that
// connections are still accepted. Tokens can be read nevertheless: the connection to the ledger stays open.
func TestAttackNoDescriptorForTokens(t *testing.T) {
	state := t.TempDir()
	all := []string{"--scope", "read", "--scope", "call", "--tenant", "acme"}
	token, _ := createToken(t, state, all...)
	s := startServe(t, "--state-dir", state)
	address := strings.TrimPrefix(s.url, "http://")
	honest := &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}
	t.Cleanup(honest.CloseIdleConnections)
	status, text := s.do(t, honest, "POST", "/v1/calls", token, sevenTimesSix)
	require.Equal(t, 200, status, text)

	const most = 64
	open := func() (open int) {
		files := noerr.Get(os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.Process.Pid)))(t)
		for _, file := range files {
			if n, err := strconv.Atoi(file.Name()); err == nil && n < most { // greater ones were inherited
				open++
			}
		}
		return open
	}
	require.Less(t, open(), most/2)
	limit := syscall.Rlimit{Cur: most, Max: most} // after the server has read its own
	_, _, failed := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(s.Process.Pid), syscall.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	require.Zero(t, failed)
	for open() < most-1 {
		c := noerr.Get(net.Dial("tcp", address))(t)
		defer c.Close()
		noerr.Get(fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"))(t)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(30*time.Second)))
		line := noerr.Get(bufio.NewReader(c).ReadString('\n'))(t)
		require.Contains(t, line, "200")
	}
	time.Sleep(600 * time.Millisecond) // a token that was read is trusted for half a second
	for range 3 {
		status, text := s.do(t, honest, "GET", "/v1/tools", token, "")
		assert.Equal(t, 200, status, text)
	}
	assert.Equal(t, most-1, open())
	assert.Equal(t, 0, s.end(t), s.log())
}
