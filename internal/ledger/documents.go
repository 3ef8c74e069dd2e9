package ledger

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/caisson-run/caisson/internal/folder"
	"github.com/caisson-run/caisson/internal/ledger/internal/database"
	"github.com/caisson-run/caisson/internal/ledger/internal/oldfolders"
)

// ErrFull means that there is no space on the disk.
var ErrFull = errors.New("the disk is full")

// Kind is what documents are.
type Kind string

// The kinds. In earlier versions, they were the names of folders with files.
const (
	TokenKind Kind = "tokens" // they have no tenant
	AgentKind Kind = "agents"
)

// Documents are the named documents of one kind in the database of a ledger. They have their own connections to it, so
// that neither calls nor searches delay them. Documents are safe for concurrent use, and must be closed.
type Documents struct {
	kind     Kind
	location string // of the ledger
	where    string

	mu     sync.Mutex
	opened *openDocuments // nil before there is a ledger
	closed bool
}

type openDocuments struct {
	*database.DB
	read, some, names, all database.Query
}

// errAbsent means that there is no ledger yet.
var errAbsent = errors.New("there is no ledger")

// documentConnections bounds the connections to PostgreSQL for documents.
const documentConnections = 4

// OpenDocuments opens the documents of the ledger in a state folder, or in the PostgreSQL database with a URL if there
// is one. Those that an earlier version has kept in the state folder are added to it. A ledger in a folder is created
// with the first document.
func OpenDocuments(ctx context.Context, kind Kind, state, url string) (*Documents, error) {
	d := &Documents{kind: kind, location: url}
	if url == "" {
		if state == "" {
			return nil, fmt.Errorf("there is no state folder, in which %s are stored", kind)
		}
		d.location = In(state)
	}
	d.where = shown(d.location)
	_, err := d.open(ctx, false)
	if errors.Is(err, errAbsent) {
		err = nil
	}
	if err == nil && state != "" {
		old := filepath.Join(state, string(kind))
		if kind == TokenKind {
			err = oldfolders.Tokens(old, func(found []oldfolders.Document) error { return d.add(ctx, found) })
		} else {
			err = oldfolders.Agents(old, func(found []oldfolders.Document) error { return d.add(ctx, found) })
		}
	}
	if err != nil {
		return nil, d.failure("open", errors.Join(err, d.Close()))
	}
	return d, nil
}

// open returns the open documents. Without a ledger, it creates one, or returns errAbsent.
func (d *Documents) open(ctx context.Context, create bool) (*openDocuments, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil, ErrClosed
	case d.opened != nil:
		return d.opened, nil
	}
	ctx = context.WithoutCancel(ctx) // others need them, too
	isFolder := !database.IsURL(d.location)
	if isFolder && !create {
		if _, err := os.Lstat(filepath.Join(d.location, database.FileName)); errors.Is(err, fs.ErrNotExist) {
			return nil, errAbsent
		}
	}
	db, err := database.Open(ctx, d.location)
	if err != nil {
		return nil, err
	}
	if db.Limit(documentConnections); isFolder {
		db.Limit(1)
		d.reserve()
	}
	// SQLite's connection is open from now on, and so needs no descriptors once clients have taken them all.
	opened := &openDocuments{DB: db}
	for text, query := range map[string]*database.Query{
		selectDocument: &opened.read, selectNames: &opened.names, selectAll: &opened.all,
		selectSome + db.Only("json_each(?))", "json_array_elements_text(?::json) as asked (value))"): &opened.some,
	} {
		if *query, err = db.Prepare(ctx, text); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	d.opened = opened
	return d.opened, nil
}

// use runs work with the open documents. If the file of the ledger was removed or replaced, it opens the new one.
func (d *Documents) use(ctx context.Context, create bool, work func(opened *openDocuments) error) error {
	for first := true; ; first = false {
		opened, err := d.open(ctx, create)
		if err == nil {
			err = work(opened)
		}
		if !first || !errors.Is(err, database.ErrMoved) {
			return err
		}
		d.mu.Lock()
		if opened != nil && d.opened == opened {
			d.opened = nil
			_ = opened.Close() // nothing that it says matters
		}
		d.mu.Unlock()
	}
}

// Close closes the documents.
func (d *Documents) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed = true; d.opened == nil {
		return nil
	}
	opened := d.opened
	d.opened = nil
	return opened.Close()
}

// add adds documents, except those that are there.
func (d *Documents) add(ctx context.Context, documents []oldfolders.Document) error {
	return d.use(ctx, true, func(opened *openDocuments) error {
		return opened.Update(ctx, func(tx *database.Tx) error {
			for _, one := range documents {
				if _, err := tx.Exec(ctx, insertDocument, string(d.kind), clean(one.Tenant), one.Name, one.Content); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

const (
	insertDocument = "insert into documents (kind, tenant, name, content) values (?, ?, ?, ?) on conflict do nothing"
	selectDocument = "select content from documents where kind = ? and tenant = ? and name = ?"
	selectNames    = "select name from documents where kind = ? and tenant = ?"
	selectAll      = "select name, content from documents where kind = ? and tenant = ?"
	selectSome     = selectAll + " and name in (select value from "
	updateDocument = "update documents set content = ? where kind = ? and tenant = ? and name = ?"
	deleteDocument = "delete from documents where kind = ? and tenant = ? and name = ?"
)

// Read returns the content of a document. The error wraps [ErrNotFound] if there is none. It returns soon after the end
// of ctx, whatever the database does.
func (d *Documents) Read(ctx context.Context, tenant, name string) ([]byte, error) {
	read := func() (content []byte, err error) {
		err = d.use(ctx, false, func(opened *openDocuments) error {
			return opened.read.Row(ctx, []any{string(d.kind), clean(tenant), name}, &content)
		})
		return content, err
	}
	var content []byte
	var err error
	if database.IsURL(d.location) {
		content, err = untilEnd(ctx, read)
	} else {
		ctx = context.WithoutCancel(ctx) // it does not wait, and nothing has to watch ctx
		content, err = read()
	}
	if errors.Is(err, sql.ErrNoRows) || errors.Is(err, errAbsent) {
		err = ErrNotFound
	}
	return content, d.failure("read", err)
}

// untilEnd returns what work does, or when ctx ends, although the driver waits for a server that does not answer.
func untilEnd[T any](ctx context.Context, work func() (T, error)) (T, error) {
	type result struct {
		of  T
		err error
	}
	ended := make(chan result, 1)
	go func() {
		of, err := work()
		ended <- result{of, err}
	}()
	select {
	case r := <-ended:
		return r.of, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// Names returns the names of a tenant's documents, in no order. It returns soon after the end of ctx, as Read does.
func (d *Documents) Names(ctx context.Context, tenant string) ([]string, error) {
	names, err := rowsOf(ctx, d, tenant, func(q *openDocuments) database.Query { return q.names },
		func(all []string, scan func(into ...any) error) ([]string, error) {
			var name string
			err := scan(&name)
			return append(all, name), err
		})
	return names, d.listed(err)
}

// All returns a tenant's documents by their names. It returns soon after the end of ctx, as Read does.
func (d *Documents) All(ctx context.Context, tenant string) (map[string][]byte, error) {
	all, err := rowsOf(ctx, d, tenant, func(q *openDocuments) database.Query { return q.all }, addDocument)
	return all, d.listed(err)
}

// Some returns those of a tenant's documents with these names that there are. The error wraps [ErrNotFound] if there is
// no ledger. It returns soon after the end of ctx, as Read does.
func (d *Documents) Some(ctx context.Context, tenant string, names []string) (map[string][]byte, error) {
	asked, err := json.Marshal(append([]string{}, names...)) // [] for none
	if err != nil {
		return nil, err
	}
	query := func(q *openDocuments) database.Query { return q.some }
	found, err := rowsOf(ctx, d, tenant, query, addDocument, string(asked))
	if errors.Is(err, errAbsent) {
		err = ErrNotFound
	}
	return found, d.failure("read", err)
}

// addDocument adds a row with a name and a content.
func addDocument(all map[string][]byte, scan func(into ...any) error) (map[string][]byte, error) {
	var name string
	var content []byte
	err := scan(&name, &content)
	if all == nil {
		all = map[string][]byte{}
	}
	all[name] = content
	return all, err
}

// rowsOf returns the results of a query for a tenant's documents, to which add adds each row.
func rowsOf[T any](
	ctx context.Context, d *Documents, tenant string, query func(*openDocuments) database.Query,
	add func(all T, scan func(into ...any) error) (T, error), more ...any,
) (T, error) {
	arguments := append([]any{string(d.kind), clean(tenant)}, more...)
	return untilEnd(ctx, func() (found T, err error) {
		err = d.use(ctx, false, func(opened *openDocuments) error {
			return query(opened).Rows(ctx, arguments, func(scan func(into ...any) error) (err error) {
				found, err = add(found, scan)
				return err
			})
		})
		return found, err
	})
}

// listed is the error of a list, which is empty if there is no ledger.
func (d *Documents) listed(err error) error {
	if errors.Is(err, errAbsent) {
		return nil
	}
	return d.failure("list", err)
}

// Change replaces a document by what change returns for its content, both nil for none. An error of change is returned
// unchanged. No other process changes the document meanwhile. change is called again if another process creates it.
func (d *Documents) Change(
	ctx context.Context, tenant, name string, change func(old []byte) (content []byte, err error),
) error {
	var refused error
	kept := func(old []byte) (content []byte, err error) {
		content, refused = change(old)
		return content, refused
	}
	err := d.use(ctx, true, func(opened *openDocuments) (err error) {
		for done := false; err == nil && !done; {
			err = opened.Update(ctx, func(tx *database.Tx) (err error) {
				done, err = d.changeIn(ctx, tx, opened.Only("", " for update"), tenant, name, kept)
				return err
			})
		}
		return err
	})
	if refused != nil {
		return refused
	}
	return d.failure("change", err)
}

// changeIn returns false if another process has created the document in the meantime.
func (d *Documents) changeIn(
	ctx context.Context, tx *database.Tx, lock, tenant, name string, change func(old []byte) ([]byte, error),
) (done bool, err error) {
	key := []any{string(d.kind), clean(tenant), name}
	var old []byte
	err = tx.Row(ctx, selectDocument+lock, key, &old)
	isNew := errors.Is(err, sql.ErrNoRows)
	if err != nil && !isNew {
		return false, err
	}
	if !isNew && old == nil {
		old = []byte{} // drivers read an empty content as nil
	}
	content, err := change(old)
	changed := int64(1)
	switch {
	case err != nil || isNew == (content == nil) && bytes.Equal(content, old):
	case isNew:
		changed, err = tx.Exec(ctx, insertDocument, append(key, content)...)
	case content == nil:
		_, err = tx.Exec(ctx, deleteDocument, key...)
	default:
		_, err = tx.Exec(ctx, updateDocument, append([]any{content}, key...)...)
	}
	return changed == 1, err
}

// spareFile takes up space on the disk, so that a document can be changed once the disk is full.
const (
	spareFile = "ledger.spare"
	spareSize = 256 << 10
)

// reserve writes the spare file if there is none. Without space, there is none.
func (d *Documents) reserve() {
	root, err := folder.Open(d.location)
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }()
	if _, err := root.Lstat(spareFile); errors.Is(err, fs.ErrNotExist) {
		content := make([]byte, spareSize)
		_, _ = rand.Read(content) // so that it cannot be compressed; it never fails
		_ = folder.Write(root, spareFile, content)
	}
}

// MakeRoom removes the spare file, and reports whether there was one. It is for changes that must not fail on a full
// disk while a server has the documents open. The file is written again when the documents are opened.
func (d *Documents) MakeRoom() bool {
	return !database.IsURL(d.location) && os.Remove(filepath.Join(d.location, spareFile)) == nil
}

func (d *Documents) failure(op string, err error) error {
	if _, ours := errors.AsType[*Error](err); err == nil || ours {
		return err
	}
	if database.IsFull(err) {
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	return &Error{op + " " + string(d.kind) + " in", d.where, err}
}
