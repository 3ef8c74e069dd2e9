//go:build !race

// Nothing here runs at the same time as anything else, and the race detector would take minutes.

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// The files real_modules_*_test.go run modules that compilers made, each as it is and as
// this engine rewrites it, and compare all that can be seen of them: results, output,
// exit codes, traps with their traces, exported globals, and every byte of memory.

// form is one way in which a module is run.
type form struct {
	name      string
	rewritten bool
	prepare   func(source []byte) ([]byte, error)
}

// forms returns the rewritten module in front of the one as it is: a module that never ends
// is found before it runs where nothing ends it.
func forms() []form {
	return []form{{"rewritten", true, rewriteAll}, {"original", false, func(source []byte) ([]byte, error) { return source, nil }}}
}

// tally counts what was compared.
type tally struct {
	modules, instances, calls int
	globals                   int // exported
	refused                   int // modules
	endless, overflows        int // calls that ended for want of fuel and of stack
}

func (t *tally) add(other tally) {
	t.modules += other.modules
	t.instances += other.instances
	t.calls += other.calls
	t.globals += other.globals
	t.refused += other.refused
	t.endless += other.endless
	t.overflows += other.overflows
}

func (t tally) String() string {
	return fmt.Sprintf("the same: %d modules with %d exported globals, %d instances, %d calls, of which %d ran out of stack and %d do not end; refused: %d modules",
		t.modules, t.globals, t.instances, t.calls, t.overflows, t.endless, t.refused)
}

// moduleFolder returns where the source of a Go module of the build list lies.
func moduleFolder(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", path).Output()
	require.NoError(t, err)
	folder := strings.TrimSpace(string(out))
	require.NotEmpty(t, folder, "%s must be downloaded", path)
	return folder
}

// mostMemory is what a memory can grow to here, in bytes.
const mostMemory = 128 << 20

// keeper allocates memories and keeps them readable when their instances are closed, as
// those of programs are that exit. It serves one goroutine.
type keeper struct{ kept []*keptMemory }

// Allocate implements experimental.MemoryAllocator.
func (k *keeper) Allocate(uint64, uint64) experimental.LinearMemory {
	memory := &keptMemory{}
	k.kept = append(k.kept, memory)
	return memory
}

type keptMemory struct{ bytes []byte }

// Reallocate implements experimental.LinearMemory.
func (m *keptMemory) Reallocate(size uint64) []byte {
	switch {
	case size > mostMemory:
		return nil
	case size <= uint64(cap(m.bytes)):
		m.bytes = m.bytes[:size]
	default:
		grown := make([]byte, size, size+size/2)
		copy(grown, m.bytes)
		m.bytes = grown
	}
	return m.bytes[:size:size]
}

// Free implements experimental.LinearMemory.
func (m *keptMemory) Free() {}

// unlike tells the first difference between two sides' memories, or nothing.
func (k *keeper) unlike(other *keeper) string {
	if len(k.kept) != len(other.kept) {
		return fmt.Sprintf("%d memories, not %d", len(k.kept), len(other.kept))
	}
	for i, memory := range k.kept {
		a, b := memory.bytes, other.kept[i].bytes
		if len(a) != len(b) {
			return fmt.Sprintf("memory %d has %d bytes, not %d", i, len(a), len(b))
		}
		if bytes.Equal(a, b) {
			continue
		}
		for at := range a {
			if a[at] != b[at] {
				return fmt.Sprintf("memory %d differs from byte %d on", i, at)
			}
		}
	}
	return ""
}

// signature is what stays of a trace's line: names go with the custom sections, and the
// import that is added moves the indices.
var signature = regexp.MustCompile(`(?m)^\t.*?(\((?:[ifv]\d+|externref|funcref|unknown|,)*\)(?: [^ \n]*)?(?: \(recovered by wazero\))?)$`)

// nameless returns a failure's text with the signatures of its trace's functions alone.
// Functions that the rewriting added, whose indices are added or more, are left out.
func nameless(text string, added int) string {
	var kept []string
	for line := range strings.Lines(text) {
		found := frame.FindStringSubmatch(line)
		if found != nil && strings.HasPrefix(line, "\t") {
			if index, err := strconv.Atoi(found[1]); err != nil || index >= added {
				continue
			}
		}
		kept = append(kept, line)
	}
	return signature.ReplaceAllString(strings.Join(kept, ""), "\t$1")
}

// failureOf returns what of a failure must be the same on all sides.
func failureOf(err error, added int) string {
	var exit *sys.ExitError
	if errors.As(err, &exit) {
		return fmt.Sprintf("exit %d", exit.ExitCode())
	}
	if reason, trace, ok := trapOf(err); ok {
		return nameless(reason+"\n\t"+strings.ReplaceAll(trace, "\n", "\n\t"), added)
	}
	return nameless(err.Error(), added)
}

// addedFrom returns the index of the first function that the rewriting of a module adds
// behind its own.
func addedFrom(description *wasm.Module) int {
	index := 1 + len(description.Functions) // 1: the import of the meter
	for _, imported := range description.Imports {
		if imported.Kind == wasm.ExternFunction {
			index++
		}
	}
	return index
}

// begin calls the start function, which a rewritten module exports.
func begin(ctx context.Context, instance api.Module) error {
	start := instance.ExportedFunction(wasm.StartName)
	if start == nil {
		return nil
	}
	_, err := start.Call(ctx)
	return err
}

// settle readies an instance for another call after a trap.
func settle(instance api.Module) {
	if depth := instance.ExportedGlobal("caisson:depth@1"); depth != nil {
		depth.(api.MutableGlobal).Set(0)
	}
}
