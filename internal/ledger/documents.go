package ledger

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
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

	mu       sync.Mutex
	database *database.DB // nil before there is one
	read     database.Query
	closed   bool
}

// documentConnections is how many are used at a time with PostgreSQL.
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

// open returns the database: nil if there is none yet and it should not be created.
func (d *Documents) open(ctx context.Context, create bool) (*database.DB, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.database != nil {
		return d.database, nil
	}
	isFolder := !database.IsURL(d.location)
	if isFolder && !create {
		if _, err := os.Lstat(filepath.Join(d.location, database.FileName)); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	db, err := database.Open(context.WithoutCancel(ctx), d.location)
	if err != nil {
		return nil, err
	}
	if db.Limit(documentConnections); isFolder {
		db.Limit(1)
		d.reserve()
	}
	// SQLite's connection is open from now on, and so needs no descriptors once clients have taken them all.
	if d.read, err = db.Prepare(context.WithoutCancel(ctx), selectDocument); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	d.database = db
	return db, nil
}

// Close closes the documents.
func (d *Documents) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	opened := d.database
	if d.database, d.closed = nil, true; opened == nil {
		return nil
	}
	return opened.Close()
}

// add adds documents, except those that are there.
func (d *Documents) add(ctx context.Context, documents []oldfolders.Document) error {
	db, err := d.open(ctx, true)
	if err != nil || db == nil {
		return err
	}
	return db.Update(ctx, func(tx *database.Tx) error {
		for _, one := range documents {
			if _, err := tx.Exec(ctx, insertDocument, string(d.kind), clean(one.Tenant), one.Name, one.Content); err != nil {
				return err
			}
		}
		return nil
	})
}

const (
	insertDocument = "insert into documents (kind, tenant, name, content) values (?, ?, ?, ?) on conflict do nothing"
	selectDocument = "select content from documents where kind = ? and tenant = ? and name = ?"
	updateDocument = "update documents set content = ? where kind = ? and tenant = ? and name = ?"
	deleteDocument = "delete from documents where kind = ? and tenant = ? and name = ?"
)

// Read returns the content of a document. The error wraps [ErrNotFound] if there is none. It returns soon after the end
// of ctx, whatever the database does.
func (d *Documents) Read(ctx context.Context, tenant, name string) ([]byte, error) {
	db, err := d.open(ctx, false)
	if err == nil && db == nil {
		err = ErrNotFound
	}
	if err != nil {
		return nil, d.failure("read", err)
	}
	var content []byte
	read := func(ctx context.Context, into *[]byte) error {
		return d.read.Row(ctx, []any{string(d.kind), clean(tenant), name}, into)
	}
	if database.IsURL(d.location) {
		content, err = untilEnd(ctx, read)
	} else {
		err = read(context.WithoutCancel(ctx), &content) // without a goroutine that watches ctx
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	return content, d.failure("read", err)
}

// untilEnd runs read until ctx ends, although it waits for a connection whose server does not answer.
func untilEnd(
	ctx context.Context, read func(ctx context.Context, into *[]byte) error,
) (content []byte, err error) {
	type result struct {
		content []byte
		err     error
	}
	ended := make(chan result, 1)
	go func() {
		var r result
		r.err = read(ctx, &r.content)
		ended <- r
	}()
	select {
	case r := <-ended:
		return r.content, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Names returns the names of a tenant's documents, in no order.
func (d *Documents) Names(ctx context.Context, tenant string) (names []string, err error) {
	err = d.rows(ctx, "name", tenant, func(scan func(into ...any) error) error {
		names = append(names, "")
		return scan(&names[len(names)-1])
	})
	return names, err
}

// All returns a tenant's documents by their names.
func (d *Documents) All(ctx context.Context, tenant string) (map[string][]byte, error) {
	all := map[string][]byte{}
	err := d.rows(ctx, "name, content", tenant, func(scan func(into ...any) error) error {
		var name string
		var content []byte
		err := scan(&name, &content)
		all[name] = content
		return err
	})
	return all, err
}

func (d *Documents) rows(
	ctx context.Context, columns, tenant string, each func(scan func(into ...any) error) error,
) error {
	db, err := d.open(ctx, false)
	if err == nil && db != nil {
		err = db.View(ctx, func(tx *database.Tx) error {
			return tx.Rows(ctx, "select "+columns+" from documents where kind = ? and tenant = ?",
				[]any{string(d.kind), clean(tenant)}, each)
		})
	}
	return d.failure("list", err)
}

// Change replaces a document by what change returns for its content, both nil for none. An error of change is returned
// unchanged. No other process changes the document meanwhile. change is called again if another process creates it.
func (d *Documents) Change(
	ctx context.Context, tenant, name string, change func(old []byte) (content []byte, err error),
) error {
	db, err := d.open(ctx, true)
	if err == nil && db == nil {
		err = ErrClosed
	}
	var refused error
	kept := func(old []byte) (content []byte, err error) {
		content, refused = change(old)
		return content, refused
	}
	for done := false; err == nil && !done; {
		err = db.Update(ctx, func(tx *database.Tx) (err error) {
			done, err = d.changeIn(ctx, tx, db.Only("", " for update"), tenant, name, kept)
			return err
		})
	}
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
