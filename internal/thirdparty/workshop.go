package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// workshop has the folders in which programs are fetched and built: the files of the registries' clients stay below
// dir, and the modules go next to their manifests.
type workshop struct {
	dir  string // absolute
	home string // the folder of this package, absolute
}

func newWorkshop() (workshop, error) {
	home, err := os.Getwd()
	if err != nil {
		return workshop{}, err
	}
	if _, err := os.Stat(filepath.Join(home, "catalogue.go")); err != nil {
		return workshop{},
			fmt.Errorf("%s is not internal/thirdparty; run this there, or make programs in the repository's root", home)
	}
	w := workshop{dir: filepath.Join(home, "..", "..", "bin", "programs"), home: home}
	return w, os.MkdirAll(w.dir, 0o755)
}

// folder makes a folder below the workshop's, empty if fresh is set.
func (w workshop) folder(name string, fresh bool) (string, error) {
	dir := filepath.Join(w.dir, filepath.FromSlash(name))
	if fresh {
		if err := os.RemoveAll(dir); err != nil {
			return "", err
		}
	}
	return dir, os.MkdirAll(dir, 0o700)
}

// manifest returns the path of a program's manifest.
func (w workshop) manifest(name string) string {
	return filepath.Join(w.home, "tools", name, "tool.yaml")
}

// module returns the path of a program's module.
func (w workshop) module(name string) string {
	return filepath.Join(w.home, "tools", name, name+".wasm")
}

// command is a program of the build with its folder, environment and arguments.
type command struct {
	in   string   // its working directory
	env  []string // in addition to the environment's
	args []string
}

// run runs a command. Its output appears only if it fails.
func (w workshop) run(ctx context.Context, c command) (stdout string, err error) {
	process := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	process.Dir = c.in
	process.Env = append(os.Environ(), c.env...)
	var out, messages bytes.Buffer
	process.Stdout, process.Stderr = &out, &messages
	if err := process.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", strings.Join(c.args, " "), err, out.String(), messages.String())
	}
	return out.String(), nil
}

// install says how to get each command that a build runs.
var install = map[string]string{
	"go":      "install Go 1.26 or later",
	"cargo":   "install Rust with rustup",
	"rustup":  "install Rust with rustup",
	"npm":     "it comes with Node.js; Debian: apt-get install npm",
	"python3": "Debian: apt-get install python3-pip",
	"apt-get": "sources of Debian's packages are fetched with it: use Debian 12",
	"tar":     "Debian: apt-get install tar xz-utils",
	"make":    "Debian: apt-get install make",
	"tclsh":   "Debian: apt-get install tcl",
	"cc":      "Debian: apt-get install gcc libc6-dev",
}

// missing returns an error for each command that is not there but that building the programs needs.
func missing(programs []program) error {
	var needed []string
	for _, p := range programs {
		needed = append(needed, p.source.needs()...)
	}
	slices.Sort(needed)
	var problems []error
	for _, name := range slices.Compact(needed) {
		if _, err := exec.LookPath(name); err != nil {
			problems = append(problems, fmt.Errorf("%s is missing: %s", name, install[name]))
		}
	}
	return errors.Join(problems...)
}

// checkSum fails if a file does not have the SHA-256 digest.
func checkSum(file, want string) error {
	got, err := digest(file)
	if err == nil && got != want {
		err = fmt.Errorf("%s has the SHA-256 digest %s, and is pinned to %s", file, got, want)
	}
	return err
}

func digest(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}
