package wasi

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/internal/permission"
)

// withDevices returns a guest with devices in the preopened folder /own, whose host function returns its arguments.
func withDevices(t testing.TB, s *System) (*guest, *[]string) {
	t.Helper()
	tree, err := guestfiles.NewTree(fstest.MapFS{"host": {Data: []byte("hidden")}, "other": {Data: []byte("a file")}})
	require.NoError(t, err)
	guestPath, err := permission.ParseGuestPath("/own")
	require.NoError(t, err)
	var called []string
	s.Files = viewOf(t, []files.Mount{{Guest: guestPath, Tree: tree}}, nil, files.Limits{})
	s.Devices = &Devices{Folder: "/own", Result: &Output{Limit: 100, Strict: true}, MaxRequest: 600, MaxBody: 400,
		Begin: func(_ context.Context, function string, request []byte, body int64) ([]byte, *Response, error) {
			if strings.HasPrefix(function, "refused") {
				return nil, &Response{3, []byte("no:"), fmt.Appendf(nil, "%s %d", request, body)}, nil
			}
			return append(make([]byte, 0, len(request)+int(body)), request...), nil, nil
		},
		Invoke: func(_ context.Context, function string, bytes []byte, request int) (Response, error) {
			called = append(called, fmt.Sprintf("%s(%s,%s)", function, bytes[:request], bytes[request:]))
			return Response{7, []byte("head:"), bytes}, nil
		}}
	return newGuest(t, s), &called
}

const (
	ownFolder = 4 // after the root
	namedAt   = 1000
	textAt    = 2000
	pairAt    = 900
	toldAt    = 800
)

// openIn opens a file of a preopened directory, and returns its descriptor.
func (g *guest) openIn(directory uint64, path string) (uint64, Errno, error) {
	copy(g.memory[namedAt:], path)
	errno, err := g.try("path_open", directory, 0, namedAt, uint64(len(path)), 0, rightFDRead|rightFDWrite, 0, 0, toldAt)
	return uint64(g.u32(toldAt)), errno, err
}

func (g *guest) transfer(name string, fd uint64, at, length int) (int, Errno) {
	put := func(at int, value uint32) {
		for i := range 4 {
			g.memory[at+i] = byte(value >> (8 * i))
		}
	}
	put(pairAt, uint32(at))
	put(pairAt+4, uint32(length))
	errno, err := g.try(name, fd, pairAt, 1, toldAt)
	require.NoError(g.t, err)
	if errno != Success {
		return 0, errno
	}
	return int(g.u32(toldAt)), Success
}

func (g *guest) writeTo(fd uint64, text string) (int, Errno) {
	copy(g.memory[textAt:], text)
	return g.transfer("fd_write", fd, textAt, len(text))
}

func (g *guest) readFrom(fd uint64, length int) (string, Errno) {
	n, errno := g.transfer("fd_read", fd, textAt, length)
	return string(g.memory[textAt : textAt+n]), errno
}

// TestHostDevice: requests may come in any pieces, one after the other.
func TestHostDevice(t *testing.T) {
	g, called := withDevices(t, &System{})
	fd, errno, err := g.openIn(ownFolder, "host")
	require.NoError(t, err)
	require.Equal(t, Success, errno)
	const request = "a:b@1.c 4 3\nabcdxyz"
	for _, size := range []int{1, 2, 5, 12, 13, len(request)} {
		*called = nil
		for rest := request; rest != ""; {
			n, errno := g.writeTo(fd, rest[:min(size, len(rest))])
			require.Equal(t, Success, errno)
			require.Positive(t, n)
			rest = rest[n:]
		}
		assert.Equal(t, []string{"a:b@1.c(abcd,xyz)"}, *called)
		var answer strings.Builder
		for {
			piece, errno := g.readFrom(fd, size)
			require.Equal(t, Success, errno)
			if piece == "" {
				break
			}
			answer.WriteString(piece)
		}
		assert.Equal(t, "7 12\nhead:abcdxyz", answer.String())
	}
	n, errno := g.writeTo(fd, "f 0 0\nnext")
	assert.Equal(t, 6, n, "the next request is written by itself")
	assert.Equal(t, Success, errno)

	for _, wrong := range []string{"f 1\n", "f 1 2 3\n", " 1 2\n", "f -1 2\n", "f 1 x\n", "f 99999999999 1\n", strings.Repeat("x", 200)} {
		_, errno := g.writeTo(fd, wrong)
		assert.Equal(t, EINVAL, errno, wrong)
	}
	for _, long := range []string{"f 601 0\n", "f 0 401\n"} {
		_, errno = g.writeTo(fd, long)
		assert.Equal(t, EFBIG, errno, long)
	}
	_, errno = g.writeTo(fd, "f 600 400\n")
	assert.Equal(t, Success, errno, "control")
}

// TestAttackRefusedBodies: the host keeps no byte of a body that it refuses, however the guest writes it, and at most
// as many as were announced of any other one.
func TestAttackRefusedBodies(t *testing.T) {
	for _, size := range []int{1, 7, 16, 200, 1000} {
		g, called := withDevices(t, &System{})
		fd, errno, err := g.openIn(ownFolder, "host")
		require.NoError(t, err)
		require.Equal(t, Success, errno)
		write := func(text string) (kept int) {
			for rest := text; rest != ""; {
				n, errno := g.writeTo(fd, rest[:min(size, len(rest))])
				require.Equal(t, Success, errno)
				require.Positive(t, n)
				rest = rest[n:]
				kept = max(kept, cap(g.system.Devices.host.written))
			}
			return kept
		}
		assert.Less(t, write("refused 3 400\nabc"+strings.Repeat("x", 400)), 200)
		answer, errno := g.readFrom(fd, 100)
		require.Equal(t, Success, errno)
		assert.Equal(t, "3 10\nno:abc 400", answer)
		assert.Empty(t, *called)
		if size < 400 {
			assert.Equal(t, 403, write("control 3 400\nabc"+strings.Repeat("x", 400)))
			assert.Equal(t, []string{"control(abc," + strings.Repeat("x", 400) + ")"}, *called)
		}
	}
}

// TestDevices: the result goes to its output, random bytes come from the call's, and other paths are files.
func TestDevices(t *testing.T) {
	g, _ := withDevices(t, &System{Random: bytes.NewReader([]byte("random bytes"))})
	fd, errno, err := g.openIn(ownFolder, "result")
	require.NoError(t, err)
	require.Equal(t, Success, errno)
	_, errno = g.writeTo(fd, "the result")
	assert.Equal(t, Success, errno)
	assert.Equal(t, "the result", string(g.system.Devices.Result.Bytes))
	_, errno = g.readFrom(fd, 1)
	assert.Equal(t, EBADF, errno)

	fd, errno, err = g.openIn(ownFolder, "random")
	require.NoError(t, err)
	require.Equal(t, Success, errno)
	text, _ := g.readFrom(fd, 6)
	assert.Equal(t, "random", text)
	_, errno = g.writeTo(fd, "x")
	assert.Equal(t, EBADF, errno)
	text, _ = g.readFrom(fd, 100)
	assert.Equal(t, " bytes", text)
	_, errno = g.readFrom(fd, 1)
	assert.Equal(t, EIO, errno, "the source is exhausted")

	fd, errno, err = g.openIn(ownFolder, "other")
	require.NoError(t, err)
	assert.Equal(t, EROFS, errno, "files of the tree cannot be written to")
	_, errno, _ = g.openIn(3, "own/host")
	assert.NotEqual(t, Success, errno, "devices are not below the root")
	_, _ = fd, err
}

// TestAttackManyDevices: a guest cannot make the host keep more than one request, or any number of descriptors. The
// control opens as many as it may.
func TestAttackManyDevices(t *testing.T) {
	g, _ := withDevices(t, &System{})
	first := uint64(0)
	for n := range maxDevices {
		fd, errno, err := g.openIn(ownFolder, "host")
		require.NoError(t, err)
		require.Equal(t, Success, errno, "control: %d", n)
		if first == 0 {
			first = fd
		}
	}
	_, errno, _ := g.openIn(ownFolder, "random")
	assert.Equal(t, EMFILE, errno)
	_, errno = g.writeTo(first, "f 500 400\nx")
	require.Equal(t, Success, errno)
	_, errno = g.writeTo(first+1, "the rest belongs to the same request")
	require.Equal(t, Success, errno)
	assert.Len(t, g.system.Devices.host.written, 37)
	assert.Equal(t, Success, must(g.try("fd_close", first)))
	_, errno, _ = g.openIn(ownFolder, "random")
	assert.Equal(t, Success, errno, "after one was closed")
}

func must(errno Errno, err error) Errno {
	if err != nil {
		panic(err)
	}
	return errno
}

// TestDevicesEndTheStart: data that a script reads or writes before its input would be the same for all calls.
func TestDevicesEndTheStart(t *testing.T) {
	for _, path := range []string{"host", "random", "result"} {
		g, _ := withDevices(t, &System{})
		g.system.Starting = true
		_, _, err := g.openIn(ownFolder, path)
		var ended *StartError
		require.ErrorAs(t, err, &ended)
		assert.Equal(t, "/own/"+path, ended.Path)
	}
}

// FuzzHostDevice: whatever the guest writes, in pieces of any size, the calls are those that a plain reader of the
// whole finds.
func FuzzHostDevice(f *testing.F) {
	f.Add("f 1 2\nabcg 0 0\n", uint8(3))
	f.Add("f 4 0\nabc", uint8(1))
	f.Add("x\nf 0 1\n!", uint8(200))
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		if len(text) > 5000 || size == 0 {
			return
		}
		g, called := withDevices(t, &System{})
		fd, errno, err := g.openIn(ownFolder, "host")
		require.NoError(t, err)
		require.Equal(t, Success, errno)
		var want []string
		for rest := text; rest != ""; {
			line, after, found := strings.Cut(rest, "\n")
			var name string
			var request, body int
			if !found {
				break
			}
			words := strings.Split(line, " ")
			if len(words) != 3 || len(line) > maxLine || words[0] == "" {
				break
			}
			name = words[0]
			for i, to := range []*int{&request, &body} {
				if n, err := fmt.Sscanf(words[i+1], "%d", to); n != 1 || err != nil || words[i+1] != strings.TrimLeft(words[i+1], "+-_") {
					request = -1
				}
				for _, c := range words[i+1] {
					if c < '0' || c > '9' {
						request = -1
					}
				}
				if words[i+1] == "" || len(words[i+1]) > 9 {
					request = -1
				}
			}
			if request < 0 || request > 600 || body > 400 || len(after) < request+body {
				break
			}
			want = append(want, fmt.Sprintf("%s(%s,%s)", name, after[:request], after[request:request+body]))
			rest = after[request+body:]
		}
		for rest := text; rest != ""; {
			n, errno := g.writeTo(fd, rest[:min(int(size), len(rest))])
			if errno != Success {
				break
			}
			require.Positive(t, n)
			rest = rest[n:]
		}
		assert.Equal(t, want, *called)
	})
}
