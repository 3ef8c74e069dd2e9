package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"modernc.org/sqlite"
	library "modernc.org/sqlite/lib"

	"github.com/caisson-run/caisson/internal/folder"
)

// FileName is the name of SQLite's file in its folder. SQLite keeps two more beside it, whose names begin with it.
const FileName = "ledger.db"

var errIrregular = errors.New("it is not a regular file")

// openSQLite opens the file in a folder, which must be private to this user.
func openSQLite(ctx context.Context, dir string) (*DB, error) {
	root, err := folder.Make(dir)
	if err != nil {
		return nil, err
	}
	// SQLite would let other users read a file that it creates; the folder keeps them out, but its mode may be changed
	// later. The file must not be opened here once SQLite has it open. Closing it would end all of SQLite's locks on it in
	// this process (fcntl_lock(2), "How To Corrupt An SQLite Database File", 2.2), and the next process to close it would
	// remove the log with the newest transactions.
	if err = folder.Create(root, FileName, nil); errors.Is(err, fs.ErrExist) {
		err = nil
	}
	var opened os.FileInfo
	if err == nil {
		if opened, err = root.Lstat(FileName); err == nil && !opened.Mode().IsRegular() {
			err = &fs.PathError{Op: "open", Path: FileName, Err: errIrregular}
		}
	}
	if err = errors.Join(err, root.Close()); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, FileName)
	write, err := sql.Open("sqlite", source(path, "_txlock=immediate&_pragma=secure_delete(1)"))
	if err != nil {
		return nil, err
	}
	write.SetMaxOpenConns(1)
	read, err := sql.Open("sqlite", source(path, "_pragma=query_only(1)"))
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	read.SetMaxOpenConns(readers)
	db := &DB{kind: sqliteKind, pool: read, prepared: map[string]*sql.Stmt{}, log: path + "-wal"}
	db.unmoved = func() error {
		if now, err := os.Lstat(path); err != nil || !os.SameFile(opened, now) {
			return &fs.PathError{Op: "use", Path: path, Err: errors.Join(ErrMoved, err)}
		}
		return nil
	}
	release := func() {
		for _, statement := range db.prepared { // before their connection, of whose memory they are
			_ = statement.Close()
		}
		clear(db.prepared)
		if db.writer != nil {
			_ = db.writer.Raw(func(any) error { return driver.ErrBadConn }) // it is closed, and not used again
			_ = db.writer.Close()
			db.writer = nil
		}
	}
	db.close = func() error {
		release()
		return errors.Join(read.Close(), write.Close())
	}
	db.renew = func(ctx context.Context) (err error) {
		release()
		writer, err := write.Conn(ctx)
		if err == nil {
			db.writer = writer
		}
		return err
	}
	// SQLite fails at once, whatever the busy timeout is, if others open a new file at the same time.
	err = db.renew(ctx)
	for began := time.Now(); isBusy(err) && ctx.Err() == nil && time.Since(began) < busyTimeout*time.Millisecond; {
		time.Sleep(busyPause)
		err = db.renew(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, db.close())
	}
	return db, nil
}

// busyPause is the time before a file that others open is opened again.
const busyPause = 10 * time.Millisecond

func isBusy(err error) bool {
	failure, ok := errors.AsType[*sqlite.Error](err)
	return ok && failure.Code()&0xff == library.SQLITE_BUSY // the rest says why
}

// readers is how many queries SQLite runs at a time. Further ones wait.
const readers = 4

// busyTimeout is how many milliseconds a connection waits for another process that has locked the file.
const busyTimeout = 10_000

// source returns the name of the database with the settings of each connection. With the write-ahead log, nobody who
// reads waits for who writes. A full synchronization makes each commit durable.
func source(path, own string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?_busy_timeout=" + strconv.Itoa(busyTimeout) +
		"&_journal_mode=WAL&_synchronous=FULL&_pragma=mmap_size(0)&_pragma=trusted_schema(0)&" + own
}

// IsFull reports whether an error means that there is no space on the disk of SQLite's file.
func IsFull(err error) bool {
	if failure, ok := errors.AsType[*sqlite.Error](err); ok {
		return failure.Code() == library.SQLITE_FULL || failure.Code() == library.SQLITE_IOERR_SHMSIZE
	}
	return errors.Is(err, syscall.ENOSPC)
}
