package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// debianSource is a program of which Debian has the source. apt-get checks Debian's signature on it,
// and the digest here pins its archive. Zig's compiler builds it. A folder of its name in the folder
// debian holds the headers that it does not find in WASI's C library.
type debianSource struct {
	name, number    string // the source package
	archive, sha256 string
	folder          string     // that is in the archive
	tools           []string   // commands that prepare runs
	prepare         [][]string // commands that write some of its files
	compiler        string     // cc or c++
	flags           []string
	files           []string // patterns
}

func (s debianSource) origin() string { return "Debian: " + s.name }

func (s debianSource) needs() []string {
	return slices.Concat([]string{"apt-get", "tar"}, zig.needs(), s.tools)
}

func (s debianSource) version(context.Context, workshop) (string, error) { return s.number, nil }

func (s debianSource) build(ctx context.Context, w workshop, out string) error {
	dir, err := s.unpack(ctx, w)
	if err != nil {
		return err
	}
	for _, args := range s.prepare {
		if _, err := w.run(ctx, command{in: dir, args: args}); err != nil {
			return err
		}
	}
	c, err := w.zigCommand(ctx, s.compiler, "-target", "wasm32-wasi", "-s", "-w",
		"-I"+filepath.Join(w.home, "debian", s.name), "-o", out)
	if err != nil {
		return err
	}
	c.in = dir
	c.args = append(c.args, s.flags...)
	for _, pattern := range s.files {
		found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("%s has no file %s, nor do the commands in prepare write it", s.archive, pattern)
		}
		c.args = append(c.args, found...)
	}
	_, err = w.run(ctx, c)
	return err
}

// unpack fetches the source and returns the folder that it is unpacked in.
func (s debianSource) unpack(ctx context.Context, w workshop) (string, error) {
	dir, err := w.folder("debian/"+s.name, true)
	if err != nil {
		return "", err
	}
	apt, err := w.aptSources(ctx)
	if err != nil {
		return "", err
	}
	fetch := slices.Concat(apt, []string{"source", "--quiet=2", "--download-only", s.name + "=" + s.number})
	if _, err := w.run(ctx, command{in: dir, args: fetch}); err != nil {
		return "", fmt.Errorf("%w\nif Debian has another version by now, change number and sha256 in catalogue.go", err)
	}
	if err := checkSum(filepath.Join(dir, s.archive), s.sha256); err != nil {
		return "", err
	}
	_, err = w.run(ctx, command{in: dir, args: []string{"tar", "--extract", "--file", s.archive}})
	return filepath.Join(dir, s.folder), err
}

// aptSources returns the start of a command line of apt-get that knows the sources of the packages
// that this machine gets from Debian. Most machines list only the binaries.
func (w workshop) aptSources(ctx context.Context) ([]string, error) {
	lists, err := w.folder("apt/lists/partial", false)
	if err != nil {
		return nil, err
	}
	lists = filepath.Dir(lists)
	file := filepath.Join(w.dir, "apt", "sources.list")
	apt := []string{"apt-get", "-o", "Dir::Etc::SourceList=" + file, "-o", "Dir::Etc::SourceParts=/dev/null", "-o",
		"Dir::State::Lists=" + lists}
	if _, err := os.Stat(file); err == nil {
		return apt, nil // read earlier
	}
	targets, err := w.run(ctx,
		command{args: []string{"apt-get", "indextargets", "--format", "$(ORIGIN)|$(SITE) $(RELEASE) $(COMPONENT)",
			"Created-By: Packages"}})
	if err != nil {
		return nil, err
	}
	var sources strings.Builder
	for line := range strings.Lines(targets) {
		if target, ok := strings.CutPrefix(line, "Debian|"); ok {
			sources.WriteString("deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] " + target)
		}
	}
	if sources.Len() == 0 {
		return nil, fmt.Errorf("apt-get knows no packages of Debian's; run apt-get update first")
	}
	if err := os.WriteFile(file+".new", []byte(sources.String()), 0o600); err != nil {
		return nil, err
	}
	update := slices.Replace(slices.Clone(apt), 2, 3, "Dir::Etc::SourceList="+file+".new")
	if _, err := w.run(ctx, command{args: append(update, "update", "--quiet=2")}); err != nil {
		return nil, err
	}
	return apt, os.Rename(file+".new", file)
}
