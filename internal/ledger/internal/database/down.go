package database

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	library "modernc.org/sqlite/lib"
)

// IsDown reports whether an error means that no transaction can be committed now, and that this one was not: the file
// is locked or cannot be written, or PostgreSQL has no space, no connection left, or cannot be reached. A connection
// that is lost, or a disk that fails, is not among these: the transaction may have been committed.
func IsDown(err error) bool {
	if failure, ok := errors.AsType[*sqlite.Error](err); ok {
		switch failure.Code() & 0xff {
		case library.SQLITE_BUSY, library.SQLITE_LOCKED, library.SQLITE_FULL, library.SQLITE_CANTOPEN,
			library.SQLITE_READONLY:
			return true
		}
	}
	if failure, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.HasPrefix(failure.Code, "53")
	}
	_, unreached := errors.AsType[*pgconn.ConnectError](err)
	return unreached || errors.Is(err, errGivenUp)
}
