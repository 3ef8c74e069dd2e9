package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/documents"
	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/index"
	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/words"
)

type indexData struct {
	// Complete is false if there was no time for all documents: another call continues.
	Complete  bool  `json:"complete"`
	Documents int   `json:"documents"` // in the index
	Chunks    int   `json:"chunks"`
	Indexed   int   `json:"indexed"` // by this call
	Unchanged int   `json:"unchanged"`
	Removed   int   `json:"removed"`
	TooLong   int   `json:"too_long"`
	Remaining int   `json:"remaining_documents"`
	Bytes     int64 `json:"remaining_bytes"`
	Rebuilt   bool  `json:"rebuilt,omitempty"` // because it was damaged
	skipped
}

const (
	// indexingShare is the share of its time that a call spends reading. Writing needs the rest.
	indexingShare = 70 // percent
	// settled is the minimum age of a change: a file can change again without getting another time.
	settled = 2 * time.Second
	// maxSmall is the maximum number of small segments. If there are more, they are merged into larger ones.
	maxSmall = 8
	// small is the number of current chunks below which a segment is small. A full segment has twice as many chunks.
	small = 8000
)

// indexer is one update of the index.
type indexer struct {
	*tools
	found     indexData
	catalogue *index.Catalogue
	entries   map[string]index.Entry
	builder   *index.Builder
	current   int   // the segment that is being built
	sizes     []int // of the segments there were, in chunks
	started   time.Time
	readUntil time.Time
	reader    documents.Reader
	words     words.Scanner
	read      int // chunks
	// made are files and folders that are removed if the index cannot be written, in the order in which they were made
	made []string
}

func (t *tools) index(a arguments) (call.Result, error) {
	list, problems, err := t.project.List(a.KnowledgeBaseIDs)
	if err != nil {
		return call.Result{}, err
	}
	now := t.now()
	x := &indexer{tools: t, started: now, readUntil: now.Add(t.deadline.Sub(now) * indexingShare / 100),
		entries: map[string]index.Entry{}}
	x.found.add(problems...)
	if err := x.makeIndexFolder(); err != nil {
		return call.Result{}, fmt.Errorf("the index cannot be written: %w", documents.Reason(err))
	}
	x.load(a.Rebuild)
	x.forget(list, a.KnowledgeBaseIDs)
	todo := x.changed(list)
	if len(todo) == 0 && x.check() { // when there is nothing else to do, since it takes long
		todo = x.changed(list)
	}
	if err := x.update(append(todo, x.sparse(list)...)); err != nil {
		x.removeMade()
		return call.Result{}, fmt.Errorf("the index cannot be written: %w", documents.Reason(err))
	}
	x.found.Complete = x.found.Remaining == 0
	return call.Result{Output: x.found.text(), Data: x.found}, nil
}

// makeIndexFolder makes the folder of the index if there is none. A link in its place, which can come with a project,
// could lead to a folder with other files.
func (x *indexer) makeIndexFolder() error {
	err := os.Mkdir(x.indexFolder(), 0o777)
	if err == nil {
		x.made = append(x.made, x.indexFolder())
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(x.indexFolder())
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s of the project is a link or a file, and not the folder of an index; remove it", indexFolder)
	}
	return err
}

// load reads the catalogue.
func (x *indexer) load(rebuild bool) {
	known := &index.Catalogue{}
	if !rebuild {
		stored, err := index.Load(x.indexFolder())
		if err == nil {
			known = stored
		}
		x.found.Rebuilt = err != nil && !errors.Is(err, fs.ErrNotExist)
	}
	x.catalogue = known
	for _, e := range known.Entries {
		x.entries[e.Path] = e
	}
	for i, name := range known.Segments {
		segment, err := index.OpenSegment(filepath.Join(x.indexFolder(), name))
		if err != nil {
			x.sizes = append(x.sizes, 0)
			x.drop(i)
			continue
		}
		x.sizes = append(x.sizes, segment.Chunks())
		segment.Close()
	}
}

// drop forgets the documents of a segment that is damaged.
func (x *indexer) drop(segment int) {
	x.found.Rebuilt = true // at least this segment's documents
	maps.DeleteFunc(x.entries, func(_ string, e index.Entry) bool {
		return slices.ContainsFunc(e.Runs, func(r index.Run) bool { return r.Segment == segment })
	})
}

// check reads the segments, as far as there is time, and reports whether any was damaged. It starts with another one
// each time.
func (x *indexer) check() (damaged bool) {
	count := len(x.catalogue.Segments)
	for i := range count {
		if !x.now().Before(x.readUntil) {
			break
		}
		number := (i + int(x.started.UnixNano()%int64(count))) % count
		segment, err := index.OpenSegment(filepath.Join(x.indexFolder(), x.catalogue.Segments[number]))
		if err == nil {
			err = segment.Check()
			segment.Close()
		}
		if err != nil {
			damaged = true
			x.drop(number)
		}
	}
	return damaged
}

// forget drops the entries of documents that are gone.
func (x *indexer) forget(list []documents.Document, bases []string) {
	listed := make(map[string]bool, len(list))
	for _, d := range list {
		listed[d.ID] = true
	}
	for path := range x.entries {
		if !listed[path] && (len(bases) == 0 || x.isGone(path)) {
			delete(x.entries, path)
			x.found.Removed++
		}
	}
}

// changed drops the entries of documents that have changed, and returns the documents that have none.
func (x *indexer) changed(list []documents.Document) (todo []documents.Document) {
	x.found.Unchanged = 0
	for _, d := range list {
		e, ok := x.entries[d.ID]
		if ok && e.Knows(d.Size, d.Modified) {
			x.found.Unchanged++
			continue
		}
		delete(x.entries, d.ID)
		todo = append(todo, d)
	}
	return todo
}

func (x *indexer) isGone(path string) bool {
	_, err := x.project.Get(path)
	return errors.Is(err, documents.ErrUnknown)
}

// sparse returns the documents of segments to merge: segments whose chunks are mostly out of date, and the small
// ones if there are many.
func (x *indexer) sparse(list []documents.Document) (todo []documents.Document) {
	live := make([]int, len(x.sizes))
	for _, e := range x.entries {
		for _, run := range e.Runs {
			live[run.Segment] += run.Count
		}
	}
	drop, smaller := map[int]bool{}, map[int]bool{}
	for segment, count := range live {
		switch {
		case count == 0:
		case 2*count < x.sizes[segment]:
			drop[segment] = true
		case count < small:
			smaller[segment] = true
		}
	}
	if len(smaller) > maxSmall {
		maps.Copy(drop, smaller)
	}
	for _, d := range list {
		if e, ok := x.entries[d.ID]; ok && slices.ContainsFunc(e.Runs, func(r index.Run) bool { return drop[r.Segment] }) {
			todo = append(todo, d)
		}
	}
	return todo
}

// update indexes documents until there is no more time, and writes the new index.
func (x *indexer) update(todo []documents.Document) error {
	x.builder = &index.Builder{}
	if len(todo) > 0 {
		x.builder = index.NewBuilder() // which is large
	}
	x.current = len(x.catalogue.Segments)
	for i, d := range todo {
		if !x.now().Before(x.readUntil) {
			x.addRemaining(todo[i:])
			break
		}
		err := x.add(d)
		switch {
		case errors.Is(err, errLate) && i == 0:
			x.entries[d.ID] = index.Entry{Path: d.ID, Size: d.Size, Modified: d.Modified, State: index.TooLong}
		case errors.Is(err, errLate):
			x.addRemaining(todo[i:])
		case errors.Is(err, errWrite):
			return errors.Unwrap(err)
		case err != nil:
			x.found.failed(d, err)
		}
		if errors.Is(err, errLate) {
			if i == 0 {
				x.addRemaining(todo[1:])
			}
			break
		}
	}
	if err := x.flush(); err != nil {
		return err
	}
	return x.save()
}

// addRemaining counts the documents for which there was no time, except those whose entries are current.
func (x *indexer) addRemaining(todo []documents.Document) {
	for _, d := range todo {
		if _, ok := x.entries[d.ID]; !ok {
			x.found.Remaining++
			x.found.Bytes += d.Size
		}
	}
}

var errWrite = errors.New("the index cannot be written")

// add indexes a document.
func (x *indexer) add(d documents.Document) error {
	entry := index.Entry{Path: d.ID, Size: d.Size, Modified: d.Modified}
	run := index.Run{Segment: x.current, First: x.builder.Chunks()}
	_, err := x.reader.Read(x.project, d, func(c *documents.Chunk) error {
		if x.read++; x.read%lateAfter == 0 && !x.now().Before(x.readUntil) {
			return errLate
		}
		if x.builder.IsFull() {
			if run.Count > 0 {
				entry.Runs = append(entry.Runs, run)
			}
			if err := x.flush(); err != nil {
				return fmt.Errorf("%w: %w", errWrite, err)
			}
			run = index.Run{Segment: x.current}
		}
		length := 0
		if len(c.Header) > 0 {
			length = x.words.Each(c.Header, x.builder.Add)
		}
		length = min(length+x.words.Each(c.Text, x.builder.Add), math.MaxUint16)
		x.builder.EndChunk(length)
		entry.Length += int64(length)
		run.Count++
		return nil
	})
	if errors.Is(err, documents.ErrBinary) {
		entry.State, entry.Runs, entry.Length, run.Count = index.Binary, nil, 0, 0
		x.found.Binary++
	} else if err != nil {
		return err
	}
	if run.Count > 0 {
		entry.Runs = append(entry.Runs, run)
	}
	if x.started.Sub(d.Modified) < settled {
		entry.Modified = time.Unix(0, 0) // so that it counts as changed, since it may change again at the same time
	}
	x.entries[d.ID] = entry
	x.found.Indexed++
	return nil
}

// flush writes the segment that is being built.
func (x *indexer) flush() error {
	if x.builder.Chunks() == 0 {
		return nil
	}
	sum := sha256.Sum256([]byte(fmt.Sprint(time.Now().UnixNano(), x.current, x.found.Indexed, x.read)))
	name := hex.EncodeToString(sum[:16])
	file, err := os.OpenFile(filepath.Join(x.indexFolder(), name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	x.made = append(x.made, file.Name())
	err = x.builder.Write(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	x.catalogue.Segments = append(x.catalogue.Segments, name)
	x.current = len(x.catalogue.Segments)
	x.builder.Reset()
	return nil
}

// save writes the catalogue in the place of the old one, and removes the segments that no document is in.
func (x *indexer) save() error {
	used := make([]int, len(x.catalogue.Segments)) // new numbers, plus 1
	next := &index.Catalogue{}
	for _, e := range x.entries {
		for _, run := range e.Runs {
			if used[run.Segment] == 0 {
				next.Segments = append(next.Segments, x.catalogue.Segments[run.Segment])
				used[run.Segment] = len(next.Segments)
			}
		}
	}
	for _, e := range x.entries {
		for i := range e.Runs {
			e.Runs[i].Segment = used[e.Runs[i].Segment] - 1
		}
		x.found.count(&e)
		next.Entries = append(next.Entries, e)
	}
	text, err := next.Encode()
	if err != nil {
		return err
	}
	name := filepath.Join(x.indexFolder(), index.Name)
	fresh := fmt.Sprintf("%s.%d", name, time.Now().UnixNano())
	x.made = append(x.made, fresh)
	if err := os.WriteFile(fresh, text, 0o666); err != nil {
		return err
	}
	if err := os.Rename(fresh, name); err != nil {
		return err
	}
	x.made = nil // they are the index now
	return x.clean(next.Segments)
}

// removeMade removes the files and folders of an index that cannot be written: they would take up the room that is
// missing.
func (x *indexer) removeMade() {
	for _, name := range slices.Backward(x.made) {
		_ = os.Remove(name)
	}
}

// clean removes the files of earlier indexes. A search that reads the old one at this moment finds that
// it is damaged, and reads the documents.
func (x *indexer) clean(segments []string) error {
	files, err := os.ReadDir(x.indexFolder())
	if err != nil {
		return err
	}
	for _, file := range files {
		if index.IsOwn(file.Name()) && !slices.Contains(segments, file.Name()) && !file.IsDir() {
			if err := os.Remove(filepath.Join(x.indexFolder(), file.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *indexData) count(e *index.Entry) {
	switch e.State {
	case index.Indexed:
		d.Documents++
		d.Chunks += e.Chunks()
	case index.TooLong:
		d.TooLong++
	}
}

func (d *indexData) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the index has %s in %s: %d indexed by this call, %d unchanged, %d removed\n",
		count(d.Chunks, "chunk", "chunks"), count(d.Documents, "document", "documents"), d.Indexed, d.Unchanged, d.Removed)
	if d.Rebuilt {
		b.WriteString("[it was damaged: what could not be used is made anew]\n")
	}
	if !d.Complete {
		fmt.Fprintf(&b, "[there was no time for %s of %d bytes: call knowledge_index again to go on]\n",
			count(d.Remaining, "document", "documents"), d.Bytes)
	}
	if d.TooLong > 0 {
		fmt.Fprintf(&b, "[%s too long for the index: knowledge_search reads what is left out]\n",
			count(d.TooLong, "document is", "documents are"))
	}
	b.WriteString(d.notes())
	return strings.TrimSuffix(b.String(), "\n")
}
