package ledger

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/ledger/internal/database"
)

// nameKind is what a name in the table names is the name of.
type nameKind int64

const (
	toolName nameKind = iota + 1
	personName
	sessionName
	outcomeName
	tenantName nameKind = 0 // in the table tenants
)

// maxNames bounds the ids that are remembered. Beyond it, all are forgotten.
const maxNames = 10_000

// names remembers the ids of names. The zero value remembers none. It is not safe for concurrent use.
type names struct {
	ids            map[name]int64
	removals       int64 // when the ids were read
	tenant, others int64 // the highest id in each table
}

type name struct {
	kind nameKind
	text string
}

// begin forgets the ids if names were removed since they were read. They cannot be removed before the transaction ends.
// It also forgets them if the database has gone back in time: an older copy of it was restored.
func (n *names) begin(ctx context.Context, d *database.DB, tx *database.Tx) error {
	var now names
	const newest = "(select coalesce(max(id), 0) from tenants), (select coalesce(max(id), 0) from names)"
	err := tx.Row(ctx, "select number, "+newest+" from removals"+d.Only("", " for share"), nil,
		&now.removals, &now.tenant, &now.others)
	isOlder := now.tenant < n.tenant || now.others < n.others
	if err != nil || now.removals != n.removals || isOlder || len(n.ids) > maxNames {
		n.ids = nil
	}
	n.removals, n.tenant, n.others = now.removals, now.tenant, now.others
	return err
}

// namesIn returns the names in an entry, in the order of the columns of calls.
func namesIn(e *Entry) []name {
	return []name{
		{tenantName, e.Tenant}, {toolName, e.Record.Function.Name}, {personName, e.User}, {sessionName, e.Session},
		{outcomeName, outcome(e.Record)},
	}
}

// add adds the unknown names of a group in sorted order, as all processes do. Otherwise, two of them could wait for
// each other.
func (n *names) add(ctx context.Context, tx *database.Tx, group []*waiting) error {
	var missing []name
	for _, w := range group {
		for _, one := range namesIn(w.entry) {
			if _, known := n.ids[one]; !known {
				missing = append(missing, one)
			}
		}
	}
	slices.SortFunc(missing, func(a, b name) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.text, b.text))
	})
	for _, one := range slices.Compact(missing) {
		if _, err := n.id(ctx, tx, one.kind, one.text); err != nil {
			return err
		}
	}
	return nil
}

// id returns the id of a name, which it adds if it is new, and nil for an empty one. A tenant always has an id.
func (n *names) id(ctx context.Context, tx *database.Tx, kind nameKind, text string) (any, error) {
	if text == "" && kind != tenantName {
		return nil, nil
	}
	of := name{kind, text}
	if id, ok := n.ids[of]; ok {
		return id, nil
	}
	id, err := idOf(ctx, tx, kind, text)
	if errors.Is(err, sql.ErrNoRows) {
		if kind == tenantName {
			_, err = tx.Exec(ctx, insertTenant, clean(text))
		} else {
			_, err = tx.Exec(ctx, insertName, int64(kind), clean(text))
		}
		if err == nil {
			id, err = idOf(ctx, tx, kind, text)
		}
	}
	if err != nil {
		return nil, err
	}
	if n.ids == nil {
		n.ids = map[name]int64{}
	}
	n.ids[of] = id
	if kind == tenantName {
		n.tenant = max(n.tenant, id)
	} else {
		n.others = max(n.others, id)
	}
	return id, nil
}

// Another process may add the same.
const (
	insertTenant = "insert into tenants (name, calls, bytes) values (?, 0, 0) on conflict do nothing"
	insertName   = "insert into names (kind, name) values (?, ?) on conflict do nothing"
)

// idOf returns the id of a name that is there.
func idOf(ctx context.Context, tx *database.Tx, kind nameKind, text string) (id int64, err error) {
	if kind == tenantName {
		err = tx.Row(ctx, "select id from tenants where name = ?", []any{clean(text)}, &id)
	} else {
		err = tx.Row(ctx, "select id from names where kind = ? and name = ?", []any{int64(kind), clean(text)}, &id)
	}
	return id, err
}

// maxName is the longest name in bytes that is held as it is.
const maxName = 512

// clean returns a text that both databases can hold and index, which excludes some bytes and long texts. Different
// texts stay different.
func clean(text string) string {
	if len(text) > maxName {
		return fmt.Sprintf(`"%x`, sha256.Sum256([]byte(text)))
	}
	if utf8.ValidString(text) && !strings.Contains(text, "\x00") && !strings.HasPrefix(text, `"`) {
		return text
	}
	return strconv.Quote(text)
}
