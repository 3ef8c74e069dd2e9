// Package guests compiles the guest programs of this repository: the first-party tools,
// the examples' and the tests'. It needs nothing but the Go toolchain, whose build cache
// makes a second compilation of the same source free.
//
// It serves `make tools`, tests and examples. A program that embeds Caisson ships its
// tools compiled and has no use for it.
package guests

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// programs are the folders that hold a guest's main package, below the repository's
// root. FOLDER/x/main.go becomes FOLDER/x/x.wasm, where the manifests look for it.
var programs = []string{
	"wasm-tools/calculator",
	"wasm-tools/files",
	"wasm-tools/json",
	"wasm-tools/knowledge",
	"wasm-tools/planning",
	"wasm-tools/plot",
	"wasm-tools/search",
	"wasm-tools/skills",
	"wasm-tools/text",
	"wasm-tools/weather",
	"wasm-tools/web",
	"examples/digest",
	"examples/retrieve",
	"examples/turn/hostile/hoard",
	"examples/turn/hostile/spin",
	"internal/guests/callprobe",
	"internal/guests/conformance",
	"internal/guests/early",
	"internal/guests/endless",
	"internal/guests/failing",
	"internal/guests/foreign",
	"internal/guests/netprobe",
	"internal/guests/probe",
	"internal/guests/reseeded",
	"internal/guests/seeded",
	"internal/guests/streamprobe",
}

// errNoRoot means that the working directory is not inside a checkout.
var errNoRoot = errors.New("guests: not inside a checkout of Caisson")

// Root returns the repository's root, looked for from the working directory upwards.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		gomod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(gomod, []byte("module github.com/caisson-run/caisson\n")) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errNoRoot
		}
		dir = parent
	}
}

// CompiledCode returns the folder where all tests cache compiled code, so that each module is compiled once
// for all of them and for commands that they run with home as their user's cache folder (XDG_CACHE_HOME).
func CompiledCode() (home, dir string, err error) {
	if userCacheErr != nil {
		return "", "", userCacheErr
	}
	home = filepath.Join(userCache, "caisson", "test")
	return home, filepath.Join(home, "caisson", "compiled"), nil
}

// userCache is the user's cache folder before [ShareCompiledCode].
var userCache, userCacheErr = os.UserCacheDir()

// ShareCompiledCode sets the user's cache folder of this process, and of commands that it starts, to the one that all
// tests share for compiled code. The go command's cache stays where it is. Tests call it where they follow programs or
// documents that name no cache. It has an effect only on systems that read XDG_CACHE_HOME.
func ShareCompiledCode(ctx context.Context) error {
	home, _, err := CompiledCode()
	if err != nil {
		return err
	}
	build, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return fmt.Errorf("guests: %w", err)
	}
	return errors.Join(os.Setenv("GOCACHE", strings.TrimSpace(string(build))), os.Setenv("XDG_CACHE_HOME", home))
}

// made are the folders whose guests this process has compiled, and the files that it has built, whose sources do not
// change while it runs.
var made = struct {
	sync.Mutex
	folders, files map[string]bool
}{folders: map[string]bool{}, files: map[string]bool{}}

// Compile compiles guest programs, by folder below the root; none means all. It returns
// the repository's root. Several processes may compile at once, and each compiles a program once.
func Compile(ctx context.Context, folders ...string) (root string, err error) {
	return CompileVerbosely(ctx, nil, folders...)
}

// CompileVerbosely is like [Compile], and writes the names of packages to log while it compiles them. If log is nil,
// nothing is written.
func CompileVerbosely(ctx context.Context, log io.Writer, folders ...string) (root string, err error) {
	if root, err = Root(); err != nil {
		return "", err
	}
	if len(folders) == 0 {
		folders = programs
	}
	made.Lock()
	defer made.Unlock()
	folders = slices.DeleteFunc(slices.Clone(folders), func(folder string) bool { return made.folders[folder] })
	if len(folders) == 0 {
		return root, nil
	}
	unlock, err := lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	// One command for all, since the go command takes longer to start than to see that nothing has changed.
	built := filepath.Join(root, "bin", "guests")
	if err := os.MkdirAll(built, 0o755); err != nil {
		return "", fmt.Errorf("guests: %w", err)
	}
	var packages []string
	for _, folder := range folders {
		packages = append(packages, "./"+folder)
	}
	if err := build(ctx, log, root, packages, built); err != nil {
		return "", err
	}
	for _, folder := range folders {
		name := path.Base(folder)
		if err := place(filepath.Join(built, name),
			filepath.Join(root, filepath.FromSlash(folder), name+".wasm")); err != nil {
			return "", fmt.Errorf("guests: %w", err)
		}
		made.folders[folder] = true
	}
	return root, nil
}

// place makes a file available under another name, unless it is already.
func place(file, name string) error {
	from, err := os.Stat(file)
	if err != nil {
		return err
	}
	if to, err := os.Stat(name); err == nil && os.SameFile(from, to) {
		return nil
	}
	next := name + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Link(file, next); err != nil {
		return err
	}
	return os.Rename(next, name)
}

// Build compiles one Go package to a WASI command. Dir is where the package's name is
// resolved, so it may belong to any module. Flags are more of them for the go command.
// A copy of the command stays in the checkout, so that it is linked again only if something has changed, for which
// a process looks once.
func Build(ctx context.Context, dir, pkg, output string, flags ...string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("guests: %w", err)
	}
	made.Lock()
	defer made.Unlock()
	unlock, err := lock()
	if err != nil {
		return err
	}
	defer unlock()
	of := sha256.Sum256([]byte(strings.Join(append([]string{dir, pkg}, flags...), "\x00")))
	kept := filepath.Join(root, "bin", "guests", hex.EncodeToString(of[:8]))
	if !made.files[kept] {
		if err := build(ctx, nil, dir, []string{pkg}, kept, flags...); err != nil {
			return err
		}
		made.files[kept] = true
	}
	module, err := os.ReadFile(kept)
	if err == nil {
		err = os.WriteFile(output, module, 0o644)
	}
	if err != nil {
		return fmt.Errorf("guests: %w", err)
	}
	return nil
}

// lock makes processes take turns, since the toolchain writes its output in place.
func lock() (unlock func(), err error) {
	unlock, err = lockedfile.MutexAt(filepath.Join(os.TempDir(),
		fmt.Sprintf("caisson-guests-%d.lock", os.Getuid()))).Lock()
	if err != nil {
		return nil, fmt.Errorf("guests: %w", err)
	}
	return unlock, nil
}

func build(ctx context.Context, log io.Writer, dir string, packages []string, output string, flags ...string) error {
	var message bytes.Buffer
	if log == nil {
		log = &message
	} else {
		flags = append(slices.Clone(flags), "-v")
	}
	arguments := slices.Concat([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w"}, flags,
		[]string{"-o", output}, packages)
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = dir
	// A test binary built for coverage or races hands its settings down; guests want none.
	environment := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "GOFLAGS=") || strings.HasPrefix(variable, "GOEXPERIMENT=")
	})
	command.Env = append(environment, "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	command.Stdout, command.Stderr = log, log
	if err := command.Run(); err != nil {
		return fmt.Errorf("guests: compile %s: %w\n%s", strings.Join(packages, ", "), err, &message)
	}
	return nil
}
