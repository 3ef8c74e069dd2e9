package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/caisson-run/caisson/internal/ledger"
)

const (
	// checkedFor is the time for which a token that was read is trusted. A revocation has an effect on new requests after
	// that time at most. Package server checks the tokens of long requests as often, which adds up to the promised second.
	checkedFor = time.Second / 2
	// readTime is the limit of a read. After it, the tokens count as unreadable.
	readTime = 3 * time.Second / 2
	// refusedFor is the same for tokens that were revoked or have expired, and for wrong secrets. They work later only
	// if an older copy of the ledger is restored.
	refusedFor = 10 * time.Second
	// From the end of a read to the next, there is as much time as the read took, within these bounds.
	minReadPause = 10 * time.Millisecond
	maxReadPause = 100 * time.Millisecond
	// maxWaiting bounds the requests that wait for a read, which takes long if the database does not answer. There are
	// fewer connections by default, but those whose clients have gone may wait as well.
	maxWaiting = 4096
)

var form = regexp.MustCompile(`^caisson_([a-z2-7]{13})_([a-z2-7]{52})$`)

var (
	errManyWaiting = errors.New("too many requests wait for tokens to be read")
	errNoLedger    = errors.New("the ledger was removed")
)

// content is a stored token as it was when it was read.
type content struct {
	stored
	damaged error
	began   time.Time // when it was read
}

// reading is a read of the tokens for which requests wait, as they are at the same time. It has not ended, and has
// perhaps not begun. All requests share one read at a time. So made-up tokens, which their senders make as fast as they
// like, cause few reads, and do not delay the others.
type reading struct {
	ids   map[string]bool // of the tokens; "" for whether there is any
	began time.Time
	ended chan struct{} // closed when found and err are set
	found map[string]*content
	err   error
}

func newReading() *reading { return &reading{ids: map[string]bool{}, ended: make(chan struct{})} }

// Check returns the token that has a text. The error wraps [ErrUnknown], [ErrExpired] or [ErrRevoked] if the token does
// not work. After another error, it may work: the ledger cannot be read. The end of ctx ends the wait for that, since a
// client that has gone says nothing about a token. A revocation has an effect within a second, and an expiry at once,
// also while the ledger cannot be read.
func (t *Tokens) Check(ctx context.Context, text string) (Token, error) {
	parts := form.FindStringSubmatch(text)
	if parts == nil {
		return Token{}, fmt.Errorf("%w: %w", ErrUnknown, errNotToken)
	}
	id, secret := parts[1], parts[2]
	var token Token
	var refused error
	worked := false
	if c := t.known(id); c != nil && c.damaged == nil {
		token, refused = c.judge(secret, t.now())
		worked = refused == nil
		if t.isWithin(checkedFor, c.began) || !worked && t.isWithin(refusedFor, c.began) {
			return token, refused
		}
	}
	found, err := t.read(ctx, id, worked)
	switch {
	case err == nil:
	case refused != nil:
		return token, refused
	default:
		return Token{}, fmt.Errorf("token %s: %w", id, err)
	}
	if c := found[id]; c != nil {
		return c.judge(secret, t.now())
	}
	return Token{}, fmt.Errorf("%w: %s", ErrUnknown, id)
}

// judge returns the token if a text with this secret is one that works.
func (c *content) judge(secret string, now time.Time) (Token, error) {
	switch {
	case c.damaged != nil:
		return Token{}, c.damaged
	case subtle.ConstantTimeCompare([]byte(c.SHA256), []byte(digestOf(secret))) != 1:
		return Token{}, fmt.Errorf("%w: its secret is wrong", ErrUnknown)
	case !c.Revoked.IsZero():
		return c.Token, ErrRevoked
	case c.hasExpired(now):
		return c.Token, ErrExpired
	}
	return c.Token, nil
}

func (t Token) hasExpired(now time.Time) bool { return !t.Expires.IsZero() && !t.Expires.After(now) }

// Exist reports whether a token was ever created, even one that no longer works. The first token is noticed within half
// a second. Once Exist has reported true, it always does, also if the ledger is removed.
func (t *Tokens) Exist(ctx context.Context) (bool, error) {
	if t.exist.Load() {
		return true, nil
	}
	t.mu.Lock()
	looked := t.looked
	t.mu.Unlock()
	if t.isWithin(checkedFor, looked) {
		return false, nil
	}
	_, err := t.read(ctx, "", true)
	return t.exist.Load(), err
}

// known returns a token as it was when it was last read; nil if it was not there, or was never read.
func (t *Tokens) known(id string) *content {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last[id]
}

// isWithin reports whether less than a time has passed since a read began.
func (t *Tokens) isWithin(most time.Duration, began time.Time) bool {
	return t.now().Before(began.Add(most))
}

// read waits for a read of a token that begins after it was called, or, unless the token may be new, for one that has
// begun not long ago.
func (t *Tokens) read(ctx context.Context, id string, begun bool) (map[string]*content, error) {
	if t.waiting.Add(1) > maxWaiting {
		t.waiting.Add(-1)
		return nil, errManyWaiting
	}
	defer t.waiting.Add(-1)
	t.mu.Lock()
	awaited := t.current
	if !begun || awaited == nil || !awaited.ids[id] || !t.isWithin(checkedFor, awaited.began) {
		if t.next == nil {
			t.next = newReading()
		}
		awaited = t.next
		awaited.ids[id] = true
		if !t.isReading {
			t.isReading = true
			t.readers.Go(t.readAll)
		}
	}
	t.mu.Unlock()
	select {
	case <-awaited.ended:
		return awaited.found, awaited.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// readAll reads as long as requests wait for that. If a read fails, who waits for the next one is not kept waiting.
func (t *Tokens) readAll() {
	for {
		t.mu.Lock()
		current, changes := t.next, t.changes
		t.next, t.current = nil, current
		t.isReading = current != nil
		if current == nil {
			t.mu.Unlock()
			return
		}
		current.began = t.now()
		t.mu.Unlock()
		start := time.Now()
		t.perform(current)
		t.mu.Lock()
		t.current = nil
		if next := t.next; current.err != nil && next != nil {
			t.next, next.err = nil, current.err
			close(next.ended)
		}
		if current.err == nil && t.changes == changes {
			t.remember(current)
		}
		t.mu.Unlock()
		close(current.ended)
		select {
		case <-time.After(min(max(minReadPause, time.Since(start)), maxReadPause)):
		case <-t.base.Done():
		}
	}
}

// remember keeps the results of a read. The caller must hold t.mu.
func (t *Tokens) remember(r *reading) {
	if len(t.last) > t.most {
		clear(t.last) // of tokens that were removed
	}
	for id := range r.ids {
		if c := r.found[id]; c != nil {
			t.last[id] = c
		} else {
			delete(t.last, id)
		}
	}
	if r.ids[""] {
		t.looked = r.began
	}
}

// perform makes a read.
func (t *Tokens) perform(r *reading) {
	ctx, cancel := context.WithTimeout(t.base, readTime)
	defer cancel()
	texts, err := t.some(ctx, noTenant, slices.Collect(maps.Keys(r.ids)))
	exist := len(texts) > 0
	switch {
	case errors.Is(err, ledger.ErrNotFound) && t.exist.Load():
		err = errNoLedger // it may have been moved
	case errors.Is(err, ledger.ErrNotFound):
		err = nil
	case err == nil && !exist && r.ids[""]:
		var ids []string
		ids, err = t.documents.Names(ctx, noTenant)
		exist = len(ids) > 0
	}
	if r.err = err; err != nil {
		return
	}
	if exist {
		t.exist.Store(true)
	}
	r.found = make(map[string]*content, len(texts))
	for id, text := range texts {
		c := &content{began: r.began}
		c.stored, c.damaged = decode(id, text)
		r.found[id] = c
	}
}
