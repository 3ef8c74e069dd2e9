package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/caisson-run/caisson/manifests"
)

// Bounds on a directory of manifests. They keep a wrong path, such as "/", from being
// read for minutes.
const (
	MaxDirectoryDepth     = 32      // folders below the directory
	MaxDirectoryEntries   = 200_000 // files and folders looked at
	MaxDirectoryManifests = 10_000
)

// Directory returns the source of all manifests in a directory and the directories
// below it, in lexical order; see [manifests.IsManifestName]. A path that is a file is
// one manifest itself, whatever its name.
//
// Directories whose name starts with a dot, or that are called node_modules, hold no
// tools. A symbolic link to a directory, and a manifest that is a symbolic link, no
// regular file or not in lower case, are errors: to pass over one would leave its name
// to the next source. An empty directory is an empty source.
func Directory(path string) Source { return directory(path) }

type directory string

func (d directory) String() string { return string(d) }

func (d directory) Manifests(ctx context.Context) ([]*manifests.Manifest, error) {
	files, err := Files(ctx, string(d))
	problems := []error{err}
	var found []*manifests.Manifest
	for _, file := range files {
		m, err := manifests.Load(file)
		problems = append(problems, err)
		found = append(found, m)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return found, nil
}

// Files returns the manifest files of a [Directory] without reading them, in its order.
//
// What is there and cannot be used, such as a manifest that is a symbolic link, is in
// the error, which joins an [*Error] for each and comes beside the files that can be
// used. No files come with an error for the path itself, a bound or the context.
func Files(ctx context.Context, path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, scanError(path, err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	s := scan{maxEntries: MaxDirectoryEntries, maxManifests: MaxDirectoryManifests}
	if err := s.directory(ctx, path, 0); err != nil {
		return nil, err
	}
	return s.files, errors.Join(s.problems...)
}

// scan collects the manifest files below a directory and all that is wrong there.
type scan struct {
	files    []string
	problems []error
	entries  int

	maxEntries, maxManifests int
}

// directory scans one directory. It fails where going on makes no sense; all else is
// noted as a problem.
func (s *scan) directory(ctx context.Context, path string, depth int) error {
	if err := ctx.Err(); err != nil {
		return scanError(path, err)
	}
	if depth > MaxDirectoryDepth {
		return scanError(path, fmt.Errorf("more than %d folders deep", MaxDirectoryDepth))
	}
	children, err := os.ReadDir(path)
	if err != nil {
		s.problems = append(s.problems, scanError(path, err))
		return nil
	}
	s.entries += len(children)
	if s.entries > s.maxEntries {
		return scanError(path, fmt.Errorf("more than %d files; name a directory that holds only tools", s.maxEntries))
	}
	for _, child := range children {
		name := filepath.Join(path, child.Name())
		switch {
		case child.IsDir():
			if skipped(child.Name()) {
				continue
			}
			if err := s.directory(ctx, name, depth+1); err != nil {
				return err
			}
		case manifests.IsManifestName(strings.ToLower(child.Name())):
			s.file(name, child.Type())
		case child.Type()&fs.ModeSymlink != 0 && !skipped(child.Name()):
			s.link(name)
		}
		if len(s.files)+len(s.problems) > s.maxManifests {
			return scanError(path, fmt.Errorf("more than %d manifests", s.maxManifests))
		}
	}
	return nil
}

// skipped reports whether a directory of this name holds no tools.
func skipped(name string) bool {
	return strings.HasPrefix(name, ".") || name == "node_modules"
}

// file notes a manifest that the scan met. What could pass for one and isn't read would
// leave its name to the next source, so it is a problem.
func (s *scan) file(path string, kind fs.FileMode) {
	switch base := filepath.Base(path); {
	case kind&fs.ModeSymlink != 0:
		s.problem(path, "the manifest is a symbolic link; put the file itself here, or name it as a source of its own")
	case !kind.IsRegular():
		s.problem(path, "the manifest is not a regular file")
	case !manifests.IsManifestName(base):
		s.problem(path, fmt.Sprintf("a manifest's name is written in lower case: %s", strings.ToLower(base)))
	default:
		s.files = append(s.files, path)
	}
}

// link notes a symbolic link to a directory, which the scan does not follow.
func (s *scan) link(path string) {
	if target, err := os.Stat(path); err == nil && target.IsDir() {
		s.problem(path, "the directory is a symbolic link; name it as a source of its own")
	}
}

func (s *scan) problem(path, what string) {
	s.problems = append(s.problems, scanError(path, errors.New(what)))
}

func scanError(path string, err error) error {
	return &Error{Op: "scan", Name: path, Err: fmt.Errorf("%w: %w", ErrSource, err)}
}
