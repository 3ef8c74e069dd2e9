package ledger

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-run/caisson/internal/ledger/internal/database"
)

// Key is a request that may be repeated.
type Key struct {
	Tenant string
	// ID is a digest of what the key belongs to, and of the key.
	ID [sha256.Size]byte
	// Body is a digest of the request.
	Body [sha256.Size]byte
	// Keep is the time after which the key is forgotten. The oldest of a tenant are forgotten earlier if it has more than
	// Keys, or if their answers have more bytes than KeptAnswer.
	Keep       time.Duration
	Keys       int
	KeptAnswer int64
}

// KeyState is the state of a request with a key.
type KeyState int

// The states.
const (
	// KeyTaken: the caller answers the request.
	KeyTaken KeyState = iota
	// KeyPending: another process answers it.
	KeyPending
	// KeyAnswered: it was answered.
	KeyAnswered
	// KeyDiffers: the key belongs to a request with another body.
	KeyDiffers
	// KeyUnknown: the process that answered it has ended, and has made calls that may have had an effect.
	KeyUnknown
)

// TakenKey is the result of [Ledger.TakeKey].
type TakenKey struct {
	State  KeyState
	Answer []byte  // if the state is KeyAnswered
	CallID string  // the first call with an effect, if the state is KeyUnknown
	Holder *Holder // if the state is KeyTaken
}

// Holder is the right of one process to answer a request with a key. It ends when another process takes over.
type Holder struct {
	ledger   *Ledger
	key      Key
	fence    int64
	answered atomic.Bool // later calls, such as those of a run, no longer need the key
}

var errFence = errors.New("another process answers this request")

// TakeKey takes a key, so that one process answers its request, once. What it returns is durable.
func (l *Ledger) TakeKey(ctx context.Context, key Key) (taken TakenKey, err error) {
	if err := l.register(ctx); err != nil {
		return TakenKey{}, l.failure("take key", err)
	}
	h := &Holder{ledger: l, key: key, fence: newFence()}
	found := new(TakenKey) // which may be written after this has returned
	err = l.asWriter(ctx, &waiting{entry: &Entry{Tenant: key.Tenant}, row: h.row()},
		func(ctx context.Context, tx *database.Tx, writer int64) (err error) {
			*found, err = h.take(ctx, tx, writer)
			return err
		})
	if err != nil && !database.IsDown(err) { // the key may be taken all the same, or later
		l.queue.add(h.changing("delete from keys where key = ? and fence = ?"))
	}
	if err != nil {
		return TakenKey{}, l.failure("take key", err)
	}
	return *found, nil
}

// row names the row of the key.
func (h *Holder) row() string { return "key " + string(h.key.ID[:]) }

func (h *Holder) take(ctx context.Context, tx *database.Tx, writer int64) (TakenKey, error) {
	l, key := h.ledger, h.key
	now, err := l.now(ctx, tx)
	if err == nil {
		err = l.forgetKeys(ctx, tx, key, now)
	}
	if err != nil {
		return TakenKey{}, err
	}
	added, err := tx.Exec(ctx, "insert into keys (key, tenant, body, until, writer, fence, bytes) "+
		"values (?, ?, ?, ?, ?, ?, 0) on conflict do nothing", key.ID[:], clean(key.Tenant), key.Body[:],
		now+key.Keep.Milliseconds(), writer, h.fence)
	if err != nil || added == 1 {
		return TakenKey{Holder: h}, err
	}
	var body, call, answer []byte
	var fence int64
	var lease sql.NullInt64
	err = tx.Row(ctx, "select body, fence, call_id, answer, (select until from writers where id = keys.writer) from keys "+
		"where key = ?"+l.database.Only("", " for update"), []any{key.ID[:]}, &body, &fence, &call, &answer, &lease)
	switch {
	case err != nil:
		return TakenKey{}, err
	case fence == h.fence: // this is repeated, since the answer to the commit was lost
		return TakenKey{Holder: h}, nil
	case string(body) != string(key.Body[:]):
		return TakenKey{State: KeyDiffers}, nil
	case answer != nil:
		return TakenKey{State: KeyAnswered, Answer: answer}, nil
	case lease.Valid && lease.Int64 >= now-overdue.Milliseconds():
		return TakenKey{State: KeyPending}, nil
	case call != nil:
		return TakenKey{State: KeyUnknown, CallID: hyphenated(call)}, nil
	}
	_, err = tx.Exec(ctx, "update keys set writer = ?, fence = ? where key = ?", writer, h.fence, key.ID[:])
	return TakenKey{Holder: h}, err
}

// newFence returns a number that is not used yet.
func newFence() int64 {
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	return int64(binary.BigEndian.Uint64(random[:]) >> 1)
}

// forgetEvery is the number of a tenant's new keys after which old keys are removed.
const forgetEvery = 64

// maxForgotten bounds the expired keys of all tenants that are removed at a time: all writes wait meanwhile.
const maxForgotten = 8 * forgetEvery

// newKeys counts the keys and the bytes of answers of each tenant since its old keys were removed. The zero value has
// counted nothing. It is safe for concurrent use.
type newKeys struct {
	mu sync.Mutex
	of map[string]newKeysOf
}

type newKeysOf struct {
	keys  int
	bytes int64 // of answers
}

// addAnswer counts an answer.
func (n *newKeys) addAnswer(tenant string, bytes int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	own := n.of[tenant]
	own.bytes += bytes
	n.set(tenant, own)
}

// addKey counts a key. It reports whether old ones are to be removed now: for a tenant's first key, and after many keys
// or so many bytes.
func (n *newKeys) addKey(tenant string, bytes int64) (enough bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	own, isKnown := n.of[tenant]
	own.keys++
	if enough = !isKnown || own.keys >= forgetEvery || own.bytes >= bytes; enough {
		own = newKeysOf{}
	}
	n.set(tenant, own)
	return enough
}

// set sets the counts of a tenant. The caller must hold n.mu.
func (n *newKeys) set(tenant string, own newKeysOf) {
	if n.of == nil {
		n.of = map[string]newKeysOf{}
	}
	n.of[tenant] = own
}

// forgetKeys sometimes removes keys that have expired, and those of the tenant beyond its bounds.
func (l *Ledger) forgetKeys(ctx context.Context, tx *database.Tx, key Key, now int64) error {
	if !l.keys.addKey(key.Tenant, key.KeptAnswer/4) {
		_, err := tx.Exec(ctx, "delete from keys where key = ? and until < ?", key.ID[:], now)
		return err
	}
	if _, err := tx.Exec(ctx, "delete from keys where key in (select key from keys where until < ? limit ?)", now,
		maxForgotten); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "delete from keys where answer is not null and key in (select key from (select key, "+
		"row_number() over newest as number, sum(bytes) over newest as total from keys where tenant = ? "+
		"window newest as (order by until desc, key)) as counted where number > ? or total > ?)", clean(key.Tenant), key.Keys,
		key.KeptAnswer)
	return err
}

// Answer keeps the answer to the request. It fails if another process has taken this one for dead, and has answered.
func (h *Holder) Answer(ctx context.Context, answer []byte) error {
	h.ledger.keys.addAnswer(h.key.Tenant, int64(len(answer)))
	err := h.ledger.failure("answer key", h.ledger.enqueue(ctx, h.answering(answer)))
	if err == nil {
		h.answered.Store(true)
	}
	return err
}

// answering returns the work of keeping an answer. If there is no room to try that again, the key is given up, as if
// this process had ended.
func (h *Holder) answering(answer []byte) *waiting {
	w := h.changing("update keys set answer = ?, bytes = ? where key = ? and fence = ?", answer, len(answer))
	w.bytes = len(answer)
	w.instead = h.changing("update keys set writer = 0 where key = ? and fence = ?")
	return w
}

// Drop gives up the key: the request was refused, and can be made again.
func (h *Holder) Drop(ctx context.Context) error {
	w := h.changing("delete from keys where key = ? and fence = ?")
	return h.ledger.failure("answer key", h.ledger.enqueue(ctx, w))
}

// changing returns the work of a statement, which is done again later if it fails.
func (h *Holder) changing(statement string, arguments ...any) *waiting {
	arguments = append(arguments, h.key.ID[:], h.fence)
	return &waiting{entry: &Entry{Tenant: h.key.Tenant}, row: h.row(), again: true,
		done: make(chan error, 1), work: func(ctx context.Context, tx *database.Tx) error {
			changed, err := tx.Exec(ctx, statement, arguments...)
			if err == nil && changed == 0 {
				err = errFence
			}
			return err
		}}
}

type holderKey struct{}

// With returns a context in which calls with an effect are made for the request. [Ledger.Intend] refuses them once
// another process has taken this one for dead.
func (h *Holder) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, holderKey{}, h)
}

// holderIn returns the holder in a context, or nil.
func holderIn(ctx context.Context) *Holder {
	h, _ := ctx.Value(holderKey{}).(*Holder)
	return h
}

// use notes that the request makes a call with an effect. It fails if another process has taken over.
func (h *Holder) use(ctx context.Context, tx *database.Tx, id []byte) error {
	if h == nil || h.answered.Load() {
		return nil
	}
	changed, err := tx.Exec(ctx, "update keys set call_id = coalesce(call_id, ?) where key = ? and fence = ?", id,
		h.key.ID[:], h.fence)
	if err == nil && changed == 0 {
		err = errFence
	}
	return err
}
