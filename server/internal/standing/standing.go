// Package standing says whether the caller of a request may still act. A token may be revoked after its request was
// accepted, such as while the body arrives, and contexts that outlive the request keep the check.
package standing

import (
	"context"
	"errors"
	"fmt"

	"github.com/caisson-run/caisson/server/auth"
)

// The errors of checks, in addition to those of [auth.Tokens].
var (
	ErrRequired = errors.New("a token is required")
	// ErrUnreadable means that a token, or whether there is one, cannot be read now. It may have been revoked.
	ErrUnreadable = errors.New("tokens cannot be read")
	// ErrUnchecked means that a token could not be read for too long.
	ErrUnchecked = errors.New("the token cannot be checked")
)

// LaterDetail is what a client is told of [ErrUnreadable].
const LaterDetail = "the server cannot check tokens now; try again later. Its log has the cause under this id"

// OfRead returns the error of a check: it wraps [ErrUnreadable] unless err says something about a token.
func OfRead(err error) error {
	if err == nil || IsEnd(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnreadable, err)
}

type key struct{}

// With returns a context that carries the caller, and a check of whether the caller may still act. check must be safe
// for concurrent use. If it is nil, the caller may act for as long as it likes.
func With(ctx context.Context, c auth.Caller, check func() error) context.Context {
	return context.WithValue(auth.With(ctx, c), key{}, check)
}

// Check returns nil if the caller of a request may act now. Handlers call Check before each effect.
//
// If [IsRefusal] reports true for the error, the caller may not act. Otherwise the token could not be read, and nothing
// must be done either.
func Check(ctx context.Context) error {
	if check, _ := ctx.Value(key{}).(func() error); check != nil {
		return check()
	}
	return nil
}

// IsRefusal reports whether an error says that a caller may not act: it has no token that works.
func IsRefusal(err error) bool {
	return errors.Is(err, auth.ErrUnknown) || errors.Is(err, auth.ErrExpired) || errors.Is(err, auth.ErrRevoked) ||
		errors.Is(err, ErrRequired)
}

// IsEnd reports whether an error of a check ends what a request has begun. After any other error the token may still
// work: it cannot be read for a moment, such as while its database starts again.
func IsEnd(err error) bool {
	return IsRefusal(err) || errors.Is(err, auth.ErrDamaged) || errors.Is(err, ErrUnchecked)
}
