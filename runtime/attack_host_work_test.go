//go:build !race

package runtime

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/abi"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/tool"
)

// promisedOver is the maximum time by which a call may outlast its deadline.
const promisedOver = 100 * time.Millisecond

// lateRow is a guest that makes the same calls of the host over and over, each as expensive as it can be.
type lateRow struct {
	before []hostCall // once
	calls  []hostCall // until the guest is ended
	// own returns the calls that each of several callers makes before that, where the calls of one would leave no work for
	// the other callers.
	own func(caller int) []hostCall
}

// hostCall is a call of a function with constant arguments.
type hostCall struct {
	function  string
	arguments []int64
}

func does(function string, arguments ...int64) hostCall { return hostCall{function, arguments} }

// Where things lie in the guest's memory. The vectors all name the buffer, so that one call moves
// a hundred times as much.
const (
	lateOut     = 16
	lateVectors = 1 << 10
	lateTexts   = 1 << 12
	lateBuffer  = 1 << 16
	lateEvents  = 1 << 20
	latePages   = 48

	lateVectorCount = 100
	lateBufferSize  = 1 << 20

	lateRemovals = 100 // of each caller
)

// lateWorld holds the grants and the memory contents of the rows' guests.
type lateWorld struct {
	grants manifests.Grants
	texts  string
}

// text places a text in the guests' memory, and returns its address and length.
func (w *lateWorld) text(s string) (address, length int64) {
	at := strings.Index(w.texts, s)
	if at < 0 {
		at = len(w.texts)
		w.texts += s
	}
	return lateTexts + int64(at), int64(len(s))
}

const (
	lateData, lateFull = 4, 5 // the descriptors of /data and /full
	lateOpened         = 6    // of the first that the guest opens
)

// open opens a path below /data.
func (w *lateWorld) open(name string, flags int64) hostCall {
	at, n := w.text(name)
	rights := int64(reads | writes)
	if flags&2 != 0 {
		rights = reads
	}
	return does("path_open", lateData, 1, at, n, flags, rights, 0, 0, lateOut)
}

// on is a call whose first argument is a directory, and then a path in it.
func (w *lateWorld) on(function string, directory int64, name string, more ...int64) hostCall {
	at, n := w.text(name)
	return does(function, slices.Concat([]int64{directory, at, n}, more)...)
}

// rows are the functions, each where it takes longest.
func (w *lateWorld) rows() map[string]lateRow {
	opens := func(name string, calls ...hostCall) lateRow {
		return lateRow{before: []hostCall{w.open(name, creates)}, calls: calls}
	}
	lists := func(calls ...hostCall) lateRow {
		return lateRow{before: []hostCall{w.open("many", 2)}, calls: calls}
	}
	loops := func(calls ...hostCall) lateRow { return lateRow{calls: calls} }
	large, largeLength := w.text("large")
	other, otherLength := w.text("other")
	link, linkLength := w.text("link")
	request, requestLength := w.text(`{"method":"GET","url":"http://api.example.com/","headers":[]}`)
	received, receivedLength := w.text(`{"id":1}`)
	name, nameLength := w.text(`{"name":"KEY"}`)
	call, callLength := w.text(`{"name":"guest","arguments":{}}`)
	emission, emissionLength := w.text(`{"type":"text","text":"` + strings.Repeat("a", 8<<10) + `"}`)
	about, aboutLength := w.text(`{}`)
	rewind := does("fd_seek", lateOpened, 0, 0, lateOut)
	const vectors, count = lateVectors, lateVectorCount
	rows := map[string]lateRow{
		"args_get": loops(does("args_get", lateBuffer, lateEvents)), "args_sizes_get": loops(does("args_sizes_get", lateOut, lateOut+8)),
		"environ_get": loops(does("environ_get", lateBuffer, lateEvents)), "environ_sizes_get": loops(does("environ_sizes_get", lateOut, lateOut+8)),
		"clock_res_get": loops(does("clock_res_get", 0, lateOut)), "clock_time_get": loops(does("clock_time_get", 0, 0, lateOut)),
		"poll_oneoff": loops(does("poll_oneoff", lateBuffer, lateEvents, 15_000, lateOut)),
		"proc_raise":  loops(does("proc_raise", 0)), "sched_yield": loops(does("sched_yield")),
		"random_get":  loops(does("random_get", lateBuffer, lateBufferSize)),
		"sock_accept": opens("other", does("sock_accept", lateOpened, 0, lateOut)), "sock_recv": opens("other", does("sock_recv", lateOpened, vectors, count, 0, lateOut, lateOut)),
		"sock_open": loops(does("sock_open", 1, 2, lateOut)), "sock_getaddrinfo": loops(does("sock_getaddrinfo", lateBuffer, 11, 0, 0, lateOut, lateOut, 1, lateOut)),
		"sock_bind": opens("other", does("sock_bind", lateOpened, lateOut, 80)), "sock_connect": opens("other", does("sock_connect", lateOpened, lateOut, 80)),
		"sock_listen": opens("other", does("sock_listen", lateOpened, 1)), "sock_accept/2": opens("other", does("sock_accept/2", lateOpened, lateOut)),
		"sock_recv_from":      opens("other", does("sock_recv_from", lateOpened, vectors, count, lateOut, 0, lateOut, lateOut, lateOut)),
		"sock_recv_from/7":    opens("other", does("sock_recv_from/7", lateOpened, vectors, count, lateOut, 0, lateOut, lateOut)),
		"sock_send_to":        opens("other", does("sock_send_to", lateOpened, vectors, count, lateOut, 80, 0, lateOut)),
		"sock_getlocaladdr":   opens("other", does("sock_getlocaladdr", lateOpened, lateOut, lateOut, lateOut)),
		"sock_getlocaladdr/3": opens("other", does("sock_getlocaladdr/3", lateOpened, lateOut, lateOut)),
		"sock_getpeeraddr":    opens("other", does("sock_getpeeraddr", lateOpened, lateOut, lateOut, lateOut)),
		"sock_getpeeraddr/3":  opens("other", does("sock_getpeeraddr/3", lateOpened, lateOut, lateOut)),
		"sock_getsockopt":     opens("other", does("sock_getsockopt", lateOpened, 0, 0, lateOut, lateOut)),
		"sock_setsockopt":     opens("other", does("sock_setsockopt", lateOpened, 0, 0, lateOut, 4)),
		"sock_send":           opens("other", does("sock_send", lateOpened, vectors, count, 0, lateOut)), "sock_shutdown": opens("other", does("sock_shutdown", lateOpened, 0)),

		"fd_advise":             opens("large", does("fd_advise", lateOpened, 0, 0, 0)),
		"fd_allocate":           opens("grown", does("fd_allocate", lateOpened, 0, 50<<20), does("fd_filestat_set_size", lateOpened, 0)),
		"fd_close":              loops(w.open("large", 0), does("fd_close", lateOpened)),
		"fd_datasync":           opens("synced", does("fd_pwrite", lateOpened, vectors, 4, 0, lateOut), does("fd_datasync", lateOpened)),
		"fd_sync":               opens("synced", does("fd_pwrite", lateOpened, vectors, 4, 0, lateOut), does("fd_sync", lateOpened)),
		"fd_fdstat_get":         opens("large", does("fd_fdstat_get", lateOpened, lateOut)),
		"fd_fdstat_set_flags":   opens("large", does("fd_fdstat_set_flags", lateOpened, 0)),
		"fd_fdstat_set_rights":  opens("large", does("fd_fdstat_set_rights", lateOpened, 0, 0)),
		"fd_filestat_get":       opens("large", does("fd_filestat_get", lateOpened, lateOut)),
		"fd_filestat_set_size":  opens("grown", does("fd_filestat_set_size", lateOpened, 60<<20), does("fd_filestat_set_size", lateOpened, 0)),
		"fd_filestat_set_times": opens("other", does("fd_filestat_set_times", lateOpened, 0, 0, 10)),
		"fd_pread":              opens("large", does("fd_pread", lateOpened, vectors, count, 0, lateOut)),
		"fd_pwrite":             opens("written", does("fd_pwrite", lateOpened, vectors, 40, 0, lateOut)),
		"fd_read":               opens("large", rewind, does("fd_read", lateOpened, vectors, count, lateOut)),
		"fd_write":              opens("written", rewind, does("fd_write", lateOpened, vectors, 40, lateOut)),
		"fd_readdir":            lists(does("fd_readdir", lateOpened, lateBuffer, lateBufferSize, 0, lateOut)),
		"fd_renumber":           opens("large", does("fd_renumber", lateOpened, lateOpened)),
		"fd_seek":               opens("large", rewind), "fd_tell": opens("large", does("fd_tell", lateOpened, lateOut)),
		"fd_prestat_get": loops(does("fd_prestat_get", lateData, lateOut)), "fd_prestat_dir_name": loops(does("fd_prestat_dir_name", lateData, lateOut, 5)),

		"path_create_directory":   loops(w.on("path_create_directory", lateData, "made"), w.on("path_remove_directory", lateData, "made")),
		"path_remove_directory":   loops(w.on("path_create_directory", lateFull, "made"), w.on("path_remove_directory", lateFull, "made")),
		"path_filestat_get":       loops(does("path_filestat_get", lateData, 1, large, largeLength, lateOut)),
		"path_filestat_set_times": loops(does("path_filestat_set_times", lateData, 1, other, otherLength, 0, 0, 10)),
		"path_link":               loops(does("path_link", lateData, 0, large, largeLength, lateData, link, linkLength), w.on("path_unlink_file", lateData, "link")),
		"path_open":               loops(w.open("large", 0), w.open("made", creates)),
		"path_readlink":           loops(w.on("path_readlink", lateData, "symlink", lateBuffer, 4096, lateOut)),
		"path_rename": loops(does("path_rename", lateData, other, otherLength, lateData, link, linkLength),
			does("path_rename", lateData, link, linkLength, lateData, other, otherLength)),
		"path_symlink":     loops(does("path_symlink", large, largeLength, lateData, link, linkLength), w.on("path_unlink_file", lateData, "link")),
		"path_unlink_file": lateRow{own: w.removals, calls: []hostCall{w.on("path_create_directory", lateFull, "made")}},

		"caisson:io@1.read":     loops(does("caisson:context@1.get", about, aboutLength), does("caisson:io@1.read", lateBuffer, lateBufferSize)),
		"caisson:net@1.request": loops(does("caisson:net@1.request", request, requestLength, 0, 0)),
		// Ten answers of each caller are on their way, and it continues to ask for more.
		"caisson:net@1.send":       loops(does("caisson:net@1.send", request, requestLength, 0, 0)),
		"caisson:net@1.receive":    loops(does("caisson:net@1.send", request, requestLength, 0, 0), does("caisson:net@1.receive", received, receivedLength)),
		"caisson:secrets@1.exists": loops(does("caisson:secrets@1.exists", name, nameLength)),
		"caisson:tools@1.call":     loops(does("caisson:tools@1.call", call, callLength)),
		"caisson:stream@1.emit":    loops(does("caisson:stream@1.emit", emission, emissionLength)),
		"caisson:context@1.get":    loops(does("caisson:context@1.get", about, aboutLength)),
	}
	return rows
}

// removals returns calls that remove entries of a directory that holds more than it may, one after the other, and each
// time try to add another.
func (w *lateWorld) removals(caller int) []hostCall {
	var calls []hostCall
	for i := range lateRemovals {
		name := fmt.Sprintf("f%05d", caller*lateRemovals+i)
		calls = append(calls, w.on("path_unlink_file", lateFull, name), w.on("path_create_directory", lateFull, "made"))
	}
	return calls
}

// newLateWorld makes directories and a server that keep the host busy.
func newLateWorld(t *testing.T) *lateWorld {
	t.Helper()
	w := &lateWorld{}
	data, full := t.TempDir(), t.TempDir()
	fill := func(dir string, names int) {
		require.NoError(t, os.MkdirAll(dir, 0o700))
		for i := range names {
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%05d", i)), nil, 0o600))
		}
	}
	fill(filepath.Join(data, "many"), 9_990)
	fill(full, lateCalls*lateRemovals)
	for i := range testsize.Of(4, 20) { // names in one directory are counted without a look at each
		fill(filepath.Join(full, fmt.Sprintf("d%02d", i)), 1000)
	}
	require.NoError(t, os.WriteFile(filepath.Join(data, "large"), make([]byte, 100<<20), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(data, "other"), nil, 0o600))
	require.NoError(t, os.Symlink("large", filepath.Join(data, "symlink")))
	body := []byte(strings.Repeat(`%25\\u0026%2541AAAA`, 5<<20/19))
	// Without TLS: the server's handshakes would keep this process busy.
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(body) }))
	t.Cleanup(server.Close)
	w.grants = manifests.Grants{
		Network: []manifests.NetworkGrant{{
			NetworkPermission: manifests.NetworkPermission{Host: "api.example.com", Methods: []string{"GET"}, Schemes: []string{"http"}, Paths: []string{"/"}},
			Connect:           server.Listener.Addr().String(),
		}},
		Files: []manifests.FileGrant{
			{Path: permission.NewGuestPath("/data"), Host: permission.NewHostTemplate(data), Access: manifests.AccessReadWrite, Quota: manifests.Quota{Bytes: 1 << 30, Files: 20_000}},
			manifests.GrantDirectory("/full", full, manifests.AccessReadWrite),
		},
		Secrets: []manifests.SecretGrant{{Binding: manifests.Binding{Origin: "caisson.yaml:9"}, Name: "KEY", From: manifests.SecretSource{Env: "KEY"}, Host: "api.example.com", Schemes: []string{"http"}}},
		Calls:   calling("guest").Calls,
	}
	return w
}

const latePermissions = `
permissions:
  network: [{host: api.example.com, methods: [GET], schemes: [http]}]
  secrets: [{name: KEY, header: X-Key, host: api.example.com}]
  files: [{path: /data, access: read-write}, {path: /full, access: read-write}]
  tools: [guest]
`

// module assembles a row's guest.
func (w *lateWorld) module(row lateRow) string {
	buffer := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, lateBuffer), lateBufferSize)
	data := []string{lateSegment(lateVectors, strings.Repeat(string(buffer), lateVectorCount)), lateSegment(lateTexts, w.texts)}
	return phased(data, phase{1, row.before}, phase{0, row.calls})
}

// phase is calls of the host that a guest makes some times, or without end if times is 0.
type phase struct {
	times int
	calls []hostCall
}

// phased assembles a command that makes calls of the host, with data segments.
func phased(data []string, phases ...phase) string {
	signatures := map[string]hostfuncs.Function{}
	for _, f := range slices.Concat(wasi.Functions(), abi.Functions()) {
		signatures[lateName(f)] = f
	}
	numbers := map[string]int{}
	var types, imports, code strings.Builder
	for _, p := range phases {
		code.WriteString("\x41" + signed(p.times) + "\x21\x00\x03\x40") // i32.const, local.set 0, loop
		for _, c := range p.calls {
			f := signatures[c.function]
			if len(f.Params) != len(c.arguments) {
				panic(c.function + " takes other arguments")
			}
			if _, known := numbers[c.function]; !known {
				numbers[c.function] = len(numbers)
				types.WriteString("\x60" + vector(lateTypes(f.Params)) + vector(lateTypes(f.Results)))
				imports.WriteString(vector(f.Module) + vector(f.Name) + "\x00" + number(numbers[c.function]))
			}
			for i, argument := range c.arguments {
				constant := map[hostfuncs.ValueType]string{hostfuncs.I32: "\x41", hostfuncs.I64: "\x42"}[f.Params[i]]
				code.WriteString(constant + signed(int(argument)))
			}
			code.WriteString("\x10" + number(numbers[c.function]))
			for range f.Results {
				code.WriteString("\x1a")
			}
		}
		if p.times == 0 {
			code.WriteString("\x0c\x00\x0b")
		} else {
			code.WriteString("\x20\x00\x41\x01\x6b\x22\x00\x0d\x00\x0b") // local.get 0, 1, sub, local.tee 0, br_if 0, end
		}
	}
	code.WriteString("\x0b")
	start := number(len(numbers))
	return magic + section(1, number(len(numbers)+1)+types.String()+"\x60\x00\x00") + section(2, number(len(numbers))+imports.String()) +
		section(3, "\x01"+start) + section(5, "\x01\x00"+number(latePages)) +
		section(7, "\x02"+vector("_start")+"\x00"+start+vector("memory")+"\x02\x00") +
		section(10, "\x01"+vector("\x01\x01\x7f"+code.String())) +
		section(11, number(len(data))+strings.Join(data, ""))
}

// lateSegment is a data segment.
func lateSegment(at int, contents string) string {
	return "\x00\x41" + signed(at) + "\x0b" + vector(contents)
}

// lateName returns a function's name in the rows.
func lateName(f hostfuncs.Function) string {
	if f.Module == wasi.ModuleName {
		return f.Name
	}
	return f.Module + "." + f.Name
}

// lateTypes writes value types as the binary format does.
func lateTypes(types []hostfuncs.ValueType) string {
	var text strings.Builder
	for _, t := range types {
		text.WriteByte(map[hostfuncs.ValueType]byte{hostfuncs.I32: 0x7f, hostfuncs.I64: 0x7e}[t])
	}
	return text.String()
}

// lateHost answers calls of tools with long results, and records emissions.
type lateHost struct{ listener }

func (*lateHost) Call(context.Context, tool.Call) (tool.Record, error) {
	result := tool.Result{Success: true, Data: json.RawMessage(`"` + strings.Repeat(`\u0026`, 5<<20/6) + `"`)}
	return tool.Record{Result: result}, nil
}

func (*lateHost) Emit(tool.Emission) error { return nil }

// TestHostWorkEndsInTime: whatever a guest asks of the host, its call ends soon after its deadline,
// that of one caller and those of sixteen. That it does not end before shows that the work of the
// row is not done by then, whether the deadline is early or late.
func TestHostWorkEndsInTime(t *testing.T) {
	w := newLateWorld(t)
	rows := w.rows()
	for _, f := range slices.Concat(wasi.Functions(), abi.Functions()) {
		if lateName(f) != "proc_exit" && !strings.HasPrefix(lateName(f), "wasi_unstable.") { // which ends its guest; which do the same
			assert.Contains(t, rows, lateName(f), "a function without a row")
		}
	}
	r := newRuntime(t, Options{Running: 32, LookupEnv: func(string) (string, bool) { return "0123456789abcdef-key", true }})
	for _, name := range testsize.Sample(slices.Sorted(maps.Keys(rows)), 6) {
		row := rows[name]
		t.Run(name, func(t *testing.T) {
			w.check(t, r, row, 1, 80*time.Millisecond)
			w.check(t, r, row, lateCalls, 160*time.Millisecond)
		})
	}
}

// check sees that calls end in time. One that was late on a busy machine is repeated.
func (w *lateWorld) check(t *testing.T, r *Runtime, row lateRow, callers int, timeout time.Duration) {
	t.Helper()
	guests := make([]*Tool, callers)
	for i := range guests {
		if i > 0 && row.own == nil {
			guests[i] = guests[0]
			continue
		}
		if row.own != nil {
			row.before = row.own(i)
		}
		limits := fmt.Sprintf("limits: {timeout: %s, fuel: 1000000000000000, memory: 16MiB, output: 16MiB}\n", timeout)
		guests[i] = load(t, r, named(t, "guest", w.module(row), limits+latePermissions), w.grants)
		require.NoError(t, guests[i].Prepare(t.Context()))
	}
	over := time.Hour
	for attempt := 0; attempt < 10 && over > promisedOver; attempt++ {
		time.Sleep(time.Duration(attempt) * 200 * time.Millisecond) // other packages' tests run at the same time
		over = min(over, w.latest(t, guests, timeout))
	}
	assert.LessOrEqual(t, over, promisedOver, "callers: %d", callers)
}

// latest returns how long after its deadline the last of some calls ended, one of each guest.
func (w *lateWorld) latest(t *testing.T, guests []*Tool, timeout time.Duration) time.Duration {
	t.Helper()
	over := make([]time.Duration, len(guests))
	var all sync.WaitGroup
	for i, guest := range guests {
		all.Go(func() {
			began := time.Now()
			outcome, err := guest.Invoke(t.Context(), tool.Invocation{CallID: fmt.Sprint("call-", i), Tool: "guest", Host: &lateHost{}})
			over[i] = time.Since(began) - timeout
			assert.Equal(t, tool.Deadline, outcome.Result.Kind, outcome.Result.Error)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.GreaterOrEqual(t, over[i], time.Duration(0), "the deadline ends it, and nothing else")
		})
	}
	all.Wait()
	return slices.Max(over)
}
