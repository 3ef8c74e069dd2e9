package executor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"runtime/debug"

	"github.com/caisson-run/caisson/registry"
)

// fingerprint is a digest of what an approval of a call is for: what the tool can do, on whose
// behalf, with which context values, files and complete arguments. It is 64 hex digits.
func (b *batch) fingerprint(ctx context.Context, c *call, entry registry.Entry) (string, error) {
	identity, err := identityOf(ctx, entry)
	if err != nil {
		return "", err
	}
	text := appendText(nil, "caisson-approval/v1")
	text = appendText(appendText(text, identity), entry.Name)
	text = appendText(appendText(text, b.session.tenant), b.session.user)
	text = appendValues(text, b.session.context)
	text = appendFiles(text, b.files)
	text = c.invocation.Arguments.AppendCanonical(text)
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:]), nil
}

// identityOf asks a tool on a goroutine of its own, as it is when it is run: it is the tool's code.
// It has no effects, so that nobody waits for a tool that goes on when ctx has ended.
func identityOf(ctx context.Context, entry registry.Entry) (string, error) {
	type answer struct {
		identity string
		err      error
	}
	answers := make(chan answer, 1)
	go func() {
		a := answer{err: errExited}
		defer func() { answers <- a }()
		defer func() {
			if value := recover(); value != nil {
				a = answer{err: &panicError{value: value, stack: debug.Stack()}}
			}
		}()
		a.identity, a.err = entry.Identity(ctx)
	}()
	select {
	case a := <-answers:
		return a.identity, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// digest is what a state tells of the session that its batch began in. The batch's id is in it, so
// that digests of two batches tell nothing about each other.
func (s *Session) digest(batch string) string {
	text := appendText(appendText(nil, "caisson-session/v1"), batch)
	text = appendValues(appendText(text, s.tenant), s.context)
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:])
}
