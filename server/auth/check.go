package auth

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"regexp"
	"time"
)

const (
	// checkedFor is how long what was read of tokens is relied on, and so how long a revocation may take to have an effect
	// on new requests. Package server looks at the tokens of requests that take long as often, which adds up to the second
	// that is promised.
	checkedFor = time.Second / 2
	// readTime is how long tokens are read. Then they count as ones that cannot be read.
	readTime = 3 * time.Second / 2
	// refusedFor is the same for tokens that were revoked or have expired, and for wrong secrets. They work later only if
	// an older copy of the ledger is restored.
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
	errNoneLeft    = errors.New("the ledger, or all tokens in it, were removed")
)

// known is what a read of all tokens has found. It is not changed.
//
// All requests that show tokens share one read at a time. So the ledger is read no more often for many tokens than for
// one, and made-up ones, which their senders make as fast as they like, neither cost more reads nor delay the others.
type known struct {
	tokens map[string]*content // by their ids
	began  time.Time
}

// content is what is stored of a token.
type content struct {
	stored
	text    []byte
	damaged error
}

// reading is a read of all tokens that has not ended, and has perhaps not begun.
type reading struct {
	began time.Time
	ended chan struct{} // closed when found and err are set
	found *known
	err   error
}

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
	if all := t.recent(); all != nil {
		if c, ok := all.tokens[id]; ok && c.damaged == nil {
			token, refused = c.judge(secret, t.now())
			worked = refused == nil
			if t.isWithin(checkedFor, all.began) || !worked && t.isWithin(refusedFor, all.began) {
				return token, refused
			}
		}
	}
	all, err := t.read(ctx, worked)
	switch {
	case err == nil:
	case refused != nil:
		return token, refused
	default:
		return Token{}, fmt.Errorf("token %s: %w", id, err)
	}
	if c, ok := all.tokens[id]; ok {
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
	if all := t.recent(); all != nil && t.isWithin(checkedFor, all.began) {
		return false, nil
	}
	_, err := t.read(ctx, true)
	return t.exist.Load(), err
}

// recent returns what the last read has found; nil if there was none.
func (t *Tokens) recent() *known {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// isWithin reports whether less than a time has passed since a read began.
func (t *Tokens) isWithin(most time.Duration, began time.Time) bool {
	return t.now().Before(began.Add(most))
}

// read waits for a read of all tokens that begins after it was called, or, unless tokens are looked for that may be
// new, for one that has begun not long ago.
func (t *Tokens) read(ctx context.Context, begun bool) (*known, error) {
	if t.waiting.Add(1) > maxWaiting {
		t.waiting.Add(-1)
		return nil, errManyWaiting
	}
	defer t.waiting.Add(-1)
	t.mu.Lock()
	awaited := t.current
	if !begun || awaited == nil || !t.isWithin(checkedFor, awaited.began) {
		if t.next == nil {
			t.next = &reading{ended: make(chan struct{})}
		}
		awaited = t.next
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

// readAll reads all tokens as long as requests wait for that.
func (t *Tokens) readAll() {
	for {
		t.mu.Lock()
		current, last, changes := t.next, t.last, t.changes
		t.next, t.current = nil, current
		t.isReading = current != nil
		if current == nil {
			t.mu.Unlock()
			return
		}
		current.began = t.now()
		t.mu.Unlock()
		start := time.Now()
		current.found, current.err = t.readAfter(last, current.began)
		t.mu.Lock()
		if t.current = nil; current.err == nil && t.changes == changes {
			t.last = current.found
		}
		t.mu.Unlock()
		if current.err == nil && len(current.found.tokens) > 0 {
			t.exist.Store(true)
		}
		close(current.ended)
		select {
		case <-time.After(min(max(minReadPause, time.Since(start)), maxReadPause)):
		case <-t.base.Done():
		}
	}
}

// readAfter reads all tokens. Those that have not changed since the last read are not decoded again.
func (t *Tokens) readAfter(last *known, began time.Time) (*known, error) {
	ctx, cancel := context.WithTimeout(t.base, readTime)
	defer cancel()
	found := &known{began: began}
	all, err := t.all(ctx, noTenant)
	if err == nil && len(all) == 0 && t.exist.Load() {
		err = errNoneLeft
	}
	if err != nil {
		return nil, err
	}
	found.tokens = make(map[string]*content, len(all))
	for id, text := range all {
		if last != nil {
			if c := last.tokens[id]; c != nil && bytes.Equal(c.text, text) {
				found.tokens[id] = c
				continue
			}
		}
		c := &content{text: text}
		c.stored, c.damaged = decode(id, text)
		found.tokens[id] = c
	}
	return found, nil
}
