package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/caisson-run/caisson/manifests"
)

// Source provides manifests.
type Source interface {
	// Manifests returns all manifests of the source in a stable order. If it cannot tell which names
	// one of them claims, it returns none and an error that names every broken one.
	Manifests(ctx context.Context) ([]Found, error)
	// String names the source as the operator does.
	String() string
}

// Found is one manifest of a source. Exactly one of its fields is set.
type Found struct {
	Manifest *manifests.Manifest
	Broken   *manifests.Error // its Names are not empty
}

type opener = func(ctx context.Context, manifest *manifests.Manifest) (Tool, error)

// Load registers the tools of a source in its order. Load the sources in order of precedence. It calls open for one
// manifest at a time, to open its tool. If the error is a [*manifests.Error], the manifest is broken; any other error
// is not the manifest's.
//
// A broken manifest is not an error: [Registry.Broken] reports it. It has no tool, but still holds
// the names that it claims, so that breaking a manifest does not free its names.
//
// If the names of a broken manifest cannot be read, or a tool fails to open for another reason, Load returns all
// problems and registers nothing from the source. Later sources must not be loaded then: they could take the names.
//
// A tool whose name is taken, or looks like another tool's, is not an error. It is not opened, and
// [Registry.Duplicates] reports it.
func (r *Registry) Load(
	ctx context.Context, source Source, open func(ctx context.Context, manifest *manifests.Manifest) (Tool, error),
) error {
	if source == nil || open == nil {
		return &Error{Op: "load", Err: fmt.Errorf("%w: the source or the function that opens tools is nil", ErrSource)}
	}
	if err := r.load(ctx, source, open); err != nil {
		return &Error{Op: "load", Name: source.String(), Err: err}
	}
	return nil
}

func (r *Registry) load(ctx context.Context, source Source, open opener) error {
	found, err := source.Manifests(ctx)
	if err != nil {
		return err
	}
	all, err := entriesOf(source.String(), found)
	if err != nil {
		return err
	}
	wanted, err := r.plan(all)
	if err != nil {
		return err
	}
	if err := openAll(ctx, wanted, open); err != nil {
		return err
	}
	unused, err := r.addAll(all)
	for _, e := range unused {
		err = errors.Join(err, closeTool(context.WithoutCancel(ctx), e.tool))
	}
	return err
}

// entriesOf returns entries for manifests, without tools.
func entriesOf(source string, found []Found) ([]*entry, error) {
	var all []*entry
	var problems []error
	for _, f := range found {
		switch {
		case f.Broken != nil && len(f.Broken.Names) == 0:
			problems = append(problems, f.Broken)
		case f.Broken != nil:
			all = append(all, brokenEntry(source, f.Broken))
		default:
			if err := checkManifest(f.Manifest); err != nil {
				problems = append(problems, err)
				continue
			}
			all = append(all, entryOf(source, f.Manifest, nil))
		}
	}
	return all, errors.Join(problems...)
}

// brokenEntry returns an entry that holds the names of a broken manifest.
func brokenEntry(source string, broken *manifests.Error) *entry {
	m := &manifests.Manifest{Name: broken.Names[0], Aliases: broken.Names[1:]}
	if len(broken.Problems) > 0 {
		m.File = broken.Problems[0].File
	}
	e := entryOf(source, m, nil)
	e.broken = broken
	return e
}

// plan returns the entries that will get their names.
func (r *Registry) plan(all []*entry) ([]*entry, error) {
	r.mu.RLock()
	names, closed := r.names.clone(), r.closed
	r.mu.RUnlock()
	if closed {
		return nil, ErrClosed
	}
	return slices.DeleteFunc(slices.Clone(all), func(e *entry) bool { return names.add(e) != nil }), nil
}

// openAll opens the tools of all entries, or none. An entry whose manifest turns out to be broken gets no tool.
func openAll(ctx context.Context, wanted []*entry, open opener) error {
	var problems []error
	for _, e := range wanted {
		if err := ctx.Err(); err != nil {
			problems = append(problems, err)
			break
		}
		if err := e.open(ctx, open); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", e.origin.Name, err))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	for _, e := range wanted {
		if err := closeTool(context.WithoutCancel(ctx), e.tool); err != nil {
			problems = append(problems, fmt.Errorf("%s: close: %w", e.origin.Name, err))
		}
	}
	return errors.Join(problems...)
}

// open opens the tool. The entry keeps the requested manifest, whatever manifest the tool returns.
func (e *entry) open(ctx context.Context, open opener) error {
	if e.broken != nil {
		return nil
	}
	t, err := open(ctx, e.manifest)
	if broken, ok := errors.AsType[*manifests.Error](err); ok {
		e.broken = &manifests.Error{Problems: broken.Problems,
			Names: slices.Concat([]string{e.manifest.Name}, e.manifest.Aliases, e.manifest.Retired)}
		return nil
	}
	if err == nil && t == nil {
		err = fmt.Errorf("%w: it was opened as nil", ErrInvalidTool)
	}
	if err == nil {
		e.tool = t
	}
	return err
}

// addAll registers the entries in the order of the source. It returns those with a tool that it did not register.
func (r *Registry) addAll(all []*entry) (unused []*entry, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range all {
		if e.tool == nil {
			// It is broken, or its name was taken when the tools were opened. Names are never released, so it is still taken.
			if r.names.add(e) == nil {
				r.noteChange()
			}
			r.noteBroken(e)
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

// noteBroken keeps the entry of a broken manifest, once for each file. The caller must hold r.mu.
func (r *Registry) noteBroken(e *entry) {
	if e.broken == nil {
		return
	}
	same := func(other *entry) bool {
		return other.manifest.File == e.manifest.File && other.origin.Source == e.origin.Source
	}
	r.broken = append(slices.DeleteFunc(r.broken, same), e)
}

// Broken returns the errors of the broken manifests of the loaded sources, in the order in which they were loaded.
func (r *Registry) Broken() []*manifests.Error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var all []*manifests.Error
	for _, e := range r.broken {
		all = append(all, e.broken)
	}
	return all
}

// Limits on a directory of manifests. They stop the scan of a wrong path, such as "/", from taking minutes.
const (
	maxDirectoryDepth     = 32      // folders below the directory
	maxDirectoryEntries   = 200_000 // files and folders visited
	maxDirectoryManifests = 10_000
)

// Directory returns a source with all manifests in a directory and its subdirectories, in lexical order; see
// [manifests.IsManifestName]. If path is a file, that file is the only manifest, whatever its name. The manifests are
// loaded with load, which several goroutines may call at a time; nil means [manifests.Load].
//
// Directories whose names start with a dot and directories named node_modules are skipped. It is an error if a
// directory is a symbolic link, or if a manifest is a symbolic link, is not a regular file or has a name that is not in
// lower case: if it were skipped, the next source could take its name. An empty directory is an empty source.
func Directory(path string, load func(path string) (*manifests.Manifest, error)) Source {
	if load == nil {
		load = manifests.Load
	}
	return directory{path, load}
}

type directory struct {
	path string
	load func(path string) (*manifests.Manifest, error)
}

func (d directory) String() string { return d.path }

func (d directory) Manifests(ctx context.Context) ([]Found, error) {
	files, err := Files(ctx, d.path)
	problems, usable := []error{err}, err == nil
	var found []Found
	for _, l := range d.loadAll(ctx, files) {
		f := Found{Manifest: l.manifest}
		if l.err != nil {
			problems = append(problems, l.err)
			broken, ok := errors.AsType[*manifests.Error](l.err)
			usable = usable && ok && len(broken.Names) > 0
			f = Found{Broken: broken}
		}
		found = append(found, f)
	}
	if err := ctx.Err(); err != nil {
		return nil, scanError(d.path, err)
	}
	if !usable {
		return nil, errors.Join(problems...)
	}
	return found, nil
}

// loaded holds the results of a [directory]'s load.
type loaded struct {
	manifest *manifests.Manifest
	err      error
}

// loadAll loads manifests on all processors until ctx is done. It panics if the loader does, for the caller.
func (d directory) loadAll(ctx context.Context, files []string) []loaded {
	all := make([]loaded, len(files))
	var next atomic.Int64
	var workers sync.WaitGroup
	var panicked atomic.Value
	for range min(goruntime.GOMAXPROCS(0), len(files)) {
		workers.Go(func() {
			defer func() {
				if cause := recover(); cause != nil {
					panicked.Store(fmt.Sprintf("%v\n%s", cause, debug.Stack()))
				}
			}()
			for i := int(next.Add(1) - 1); i < len(files) && ctx.Err() == nil; i = int(next.Add(1) - 1) {
				all[i].manifest, all[i].err = d.load(files[i])
			}
		})
	}
	workers.Wait()
	if cause := panicked.Load(); cause != nil {
		panic(cause)
	}
	return all
}

// Files returns the paths of the manifest files of a [Directory] in its order, without reading them.
//
// The error joins an [*Error] for each unusable file, such as a manifest that is a symbolic link. The usable files are
// returned with it. If path itself cannot be read, a limit is exceeded or ctx is done, no files are returned.
func Files(ctx context.Context, path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, scanError(path, err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	s := scan{maxEntries: maxDirectoryEntries, maxManifests: maxDirectoryManifests}
	if err := s.directory(ctx, path, 0); err != nil {
		return nil, err
	}
	return s.files, errors.Join(s.problems...)
}

// scan collects the manifest files below a directory and the problems found there.
type scan struct {
	files    []string
	problems []error
	entries  int

	maxEntries, maxManifests int
}

// directory scans one directory. It returns errors that end the scan, and records all other errors as problems.
func (s *scan) directory(ctx context.Context, path string, depth int) error {
	if err := ctx.Err(); err != nil {
		return scanError(path, err)
	}
	if depth > maxDirectoryDepth {
		return scanError(path, fmt.Errorf("more than %d folders deep", maxDirectoryDepth))
	}
	children, err := os.ReadDir(path)
	if err != nil && depth == 0 {
		return scanError(path, err)
	}
	if err != nil {
		s.problems = append(s.problems, unread(path, err))
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

// skipped reports whether directories with this name are skipped.
func skipped(name string) bool { return strings.HasPrefix(name, ".") || name == "node_modules" }

// file records a manifest. One that cannot be read is a problem: the next source could otherwise take its name.
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

// link reports a symbolic link to a directory. The scan does not follow links.
func (s *scan) link(path string) {
	if target, err := os.Stat(path); err == nil && target.IsDir() {
		s.problem(path, "the directory is a symbolic link; name it as a source of its own")
	}
}

func (s *scan) problem(path, what string) {
	s.problems = append(s.problems, unread(path, errors.New(what)))
}

func unread(path string, err error) error {
	return &Error{Op: "scan", Name: path, Err: fmt.Errorf("%w: %w", ErrUnread, err)}
}

func scanError(path string, err error) error {
	return &Error{Op: "scan", Name: path, Err: fmt.Errorf("%w: %w", ErrSource, err)}
}
