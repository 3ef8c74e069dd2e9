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

// Source is where manifests come from.
type Source interface {
	// Manifests returns all the manifests of the source in a stable order. If any is
	// broken it returns none of them, and an error that names every broken one.
	Manifests(ctx context.Context) ([]*manifests.Manifest, error)
	// String names the source as the operator does.
	String() string
}

// Open makes a tool of a manifest. [Registry.Load] calls it for one manifest at a time.
type Open func(ctx context.Context, manifest *manifests.Manifest) (Tool, error)

// Load registers the tools of a source in its order. Load the sources in the order of
// their precedence.
//
// All or nothing: if a manifest is broken or a tool fails to open, Load returns all
// problems and registers nothing of the source. A tool that silently went missing
// would hand its name to the next source that asks for it.
//
// A tool whose name is taken is no failure. It is not opened, and
// [Registry.Duplicates] reports it. One whose name only looks like that of another tool
// is a failure, with a [*DuplicateError] that names both: which of the two people mean
// who read the name, in a policy or where they approve of a call, the order in which they
// were loaded cannot say.
func (r *Registry) Load(ctx context.Context, source Source, open Open) error {
	if source == nil || open == nil {
		return &Error{Op: "load", Err: fmt.Errorf("%w: the source or the function that opens tools is nil", ErrSource)}
	}
	found, err := source.Manifests(ctx)
	if err != nil {
		return &Error{Op: "load", Name: source.String(), Err: err}
	}
	wanted, err := r.plan(source.String(), found)
	if err != nil {
		return &Error{Op: "load", Name: source.String(), Err: err}
	}
	entries, err := openAll(ctx, source.String(), wanted, open)
	if err != nil {
		return &Error{Op: "load", Name: source.String(), Err: err}
	}
	unused, err := r.addAll(source.String(), found, entries)
	for _, e := range unused {
		err = errors.Join(err, closeTool(context.WithoutCancel(ctx), e.tool))
	}
	if err != nil {
		return &Error{Op: "load", Name: source.String(), Err: err}
	}
	return nil
}

// plan returns the manifests that will get their names.
func (r *Registry) plan(source string, found []*manifests.Manifest) ([]*manifests.Manifest, error) {
	r.mu.RLock()
	names, closed := r.names.clone(), r.closed
	r.mu.RUnlock()
	if closed {
		return nil, ErrClosed
	}
	var wanted []*manifests.Manifest
	var problems []error
	for _, m := range found {
		if err := checkManifest(m); err != nil {
			problems = append(problems, err)
			continue
		}
		switch duplicate := names.add(&entry{manifest: m, origin: originOf(source, m)}); {
		case duplicate == nil:
			wanted = append(wanted, m)
		case duplicate.Reason == LookAlike:
			problems = append(problems, duplicate)
		}
	}
	return wanted, errors.Join(problems...)
}

// openAll opens the tools of all manifests, or none.
func openAll(ctx context.Context, source string, wanted []*manifests.Manifest, open Open) (map[*manifests.Manifest]*entry, error) {
	entries := make(map[*manifests.Manifest]*entry, len(wanted))
	var problems []error
	for _, m := range wanted {
		if err := ctx.Err(); err != nil {
			problems = append(problems, err)
			break
		}
		e, err := openOne(ctx, source, m, open)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", m.Name, err))
			continue
		}
		entries[m] = e
	}
	if len(problems) == 0 {
		return entries, nil
	}
	for _, m := range wanted {
		if e := entries[m]; e != nil {
			if err := closeTool(context.WithoutCancel(ctx), e.tool); err != nil {
				problems = append(problems, fmt.Errorf("%s: close: %w", m.Name, err))
			}
		}
	}
	return nil, errors.Join(problems...)
}

// openOne opens one tool. It registers under the manifest that was asked for, whatever
// manifest the tool itself names.
func openOne(ctx context.Context, source string, m *manifests.Manifest, open Open) (*entry, error) {
	t, err := open(ctx, m)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, fmt.Errorf("%w: it was opened as nil", ErrInvalidTool)
	}
	return &entry{tool: t, manifest: m, origin: originOf(source, m), gate: newGate(), registration: newRegistration()}, nil
}

// addAll registers what was opened, in the order of the source, and reports the rest.
// It returns the entries that it did not register.
func (r *Registry) addAll(source string, found []*manifests.Manifest, entries map[*manifests.Manifest]*entry) (unused []*entry, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range found {
		e := entries[m]
		if e == nil {
			// Its name was taken when the tools were opened. Names are never given
			// up, so it is taken now.
			r.names.add(&entry{manifest: m, origin: originOf(source, m)})
			continue
		}
		switch addErr := r.add(e); {
		case errors.Is(addErr, ErrClosed):
			err = addErr
			unused = append(unused, e)
		case addErr != nil:
			unused = append(unused, e)
		}
	}
	return unused, err
}

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
