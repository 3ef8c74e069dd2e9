// Package documents reads the documents of a project, piece by piece.
//
// A document is a file of a project that has text, and its path is its id. Its text is split into chunks, of
// which only one is in memory at a time. The same text always has the same chunks.
package documents

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Project is a folder of documents.
type Project struct {
	Root string
}

// Document is a file that may have text.
type Document struct {
	ID       string // its path in the project
	Size     int64  // in bytes
	Modified time.Time
}

// Problem says why a file or a folder was not read.
type Problem struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// MaxDocuments bounds how many documents a call looks at.
const MaxDocuments = 100_000

// ErrUnknown means that the project has no document or knowledge base of the name.
var ErrUnknown = errors.New("there is none of that name in the project")

// Kind is the format of a document, which determines its chunks.
type Kind string

// The kinds of documents.
const (
	Text     Kind = "text"
	Markdown Kind = "markdown"
	HTML     Kind = "html"
	CSV      Kind = "csv"
)

// Kind returns the kind of a document, by the end of its name.
func (d Document) Kind() Kind {
	switch strings.ToLower(path.Ext(d.ID)) {
	case ".md", ".markdown", ".mdown", ".mdx":
		return Markdown
	case ".html", ".htm", ".xhtml":
		return HTML
	case ".csv", ".tsv":
		return CSV
	}
	return Text
}

// Compare orders documents as [Project.List] does: by the names on their paths.
func Compare(a, b string) int {
	for {
		first, restA, deepA := strings.Cut(a, "/")
		second, restB, deepB := strings.Cut(b, "/")
		if order := cmp.Compare(first, second); order != 0 {
			return order
		}
		if !deepA || !deepB {
			return cmp.Compare(len(restA), len(restB))
		}
		a, b = restA, restB
	}
}

// List returns the documents of knowledge bases, which are folders of the project, or of all of it if none is
// named. Files and folders that start with a dot are left out. Links are followed to files and not to folders.
func (p Project) List(bases []string) (found []Document, problems []Problem, err error) {
	bases, err = p.folders(bases)
	if err != nil {
		return nil, nil, err
	}
	l := listing{project: p}
	for _, base := range bases {
		l.folder(base)
	}
	slices.SortFunc(l.found, func(a, b Document) int { return Compare(a.ID, b.ID) })
	return l.found, l.problems, nil
}

// folders returns the folders to list, none of them in another.
func (p Project) folders(bases []string) (kept []string, err error) {
	if len(bases) == 0 {
		bases = []string{"."}
	}
	for _, base := range bases {
		name, err := clean(base)
		if err == nil {
			var info fs.FileInfo
			if info, err = os.Stat(path.Join(p.Root, name)); err == nil && !info.IsDir() {
				err = errors.New("it is a file; a knowledge base is a folder of the project")
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w; %s", ErrUnknown, p.suggestion())
		}
		if err != nil {
			return nil, fmt.Errorf("the knowledge base %s: %w", base, Reason(err))
		}
		kept = append(kept, name)
	}
	slices.Sort(kept)
	kept = slices.Compact(kept)
	return slices.DeleteFunc(kept, func(name string) bool {
		return slices.ContainsFunc(kept, func(other string) bool {
			return other != name && (other == "." || strings.HasPrefix(name, other+"/"))
		})
	}), nil
}

// suggestion names existing folders.
func (p Project) suggestion() string {
	entries, err := os.ReadDir(p.Root)
	if err != nil {
		return "the project cannot be read: " + Reason(err).Error()
	}
	const limit = 20
	var names []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && len(names) < limit {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		return "the project has no folders; leave knowledge_base_ids out"
	}
	return "the project's folders are " + strings.Join(names, ", ")
}

// clean returns a normalized path below the project. The sandbox decides where links in it may lead.
func clean(name string) (string, error) {
	cleaned := path.Clean(name)
	if path.IsAbs(name) || cleaned == ".." || strings.HasPrefix(cleaned, "../") {
		return "", errors.New("write a path in the project, such as docs or docs/guide.md")
	}
	return cleaned, nil
}

type listing struct {
	project  Project
	found    []Document
	problems []Problem
	full     bool
}

func (l *listing) folder(name string) {
	entries, err := os.ReadDir(path.Join(l.project.Root, name))
	if err != nil {
		l.problems = append(l.problems, Problem{name, Reason(err).Error()})
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		id := path.Join(name, e.Name())
		switch {
		case e.IsDir():
			l.folder(id)
		case l.full:
		case len(l.found) == MaxDocuments:
			l.full = true
			l.problems = append(l.problems,
				Problem{id,
					fmt.Sprintf("it and what follows are left out: a call reads at most %d documents; name fewer knowledge bases",
						MaxDocuments)})
		default:
			l.file(id, e)
		}
	}
}

func (l *listing) file(id string, e fs.DirEntry) {
	info, err := e.Info()
	if err == nil && e.Type()&fs.ModeSymlink != 0 {
		info, err = os.Stat(path.Join(l.project.Root, id))
	}
	switch {
	case err != nil:
		l.problems = append(l.problems, Problem{id, Reason(err).Error()})
	case info.Mode().IsRegular():
		l.found = append(l.found, Document{ID: id, Size: info.Size(), Modified: info.ModTime()})
	}
}

// Get returns the document of an id.
func (p Project) Get(id string) (Document, error) {
	name, err := clean(id)
	if err != nil {
		return Document{}, err
	}
	info, err := os.Stat(path.Join(p.Root, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Document{}, ErrUnknown
	case err != nil:
		return Document{}, Reason(err)
	case info.IsDir():
		return Document{}, errors.New("it is a folder; a knowledge_id is the path of a file")
	case !info.Mode().IsRegular():
		return Document{}, errors.New("it is neither a file nor a folder")
	}
	return Document{ID: name, Size: info.Size(), Modified: info.ModTime()}, nil
}

// Reason words a failure without the path, which callers add as the project has it.
func Reason(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return errors.New("not permitted")
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("it is gone, or a link that leads nowhere")
	case errors.Is(err, syscall.ENOSPC):
		return errors.New("the project has no room left")
	case errors.Is(err, syscall.EROFS):
		return errors.New("the project can only be read")
	}
	if inPath, ok := errors.AsType[*fs.PathError](err); ok {
		return errors.New(strings.ToLower(inPath.Err.Error()))
	}
	return err
}
