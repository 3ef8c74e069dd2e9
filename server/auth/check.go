package auth

import (
	"context"
	"errors"
)

type checkKey struct{}

// WithCheck returns a context that carries the caller, and a check of whether the caller may still act. check must be
// safe for concurrent use. If it is nil, the caller may act for as long as it likes.
func WithCheck(ctx context.Context, c Caller, check func() error) context.Context {
	return context.WithValue(With(ctx, c), checkKey{}, check)
}

// Check returns nil if the caller of a request may act now. A token may have been revoked since the request was
// accepted, such as while its body arrived. Handlers call Check before each effect; contexts that outlive the request
// keep the check.
//
// If [IsRefusal] reports true for the error, the caller may not act. Otherwise the token could not be read, and nothing
// must be done either.
func Check(ctx context.Context) error {
	if check, _ := ctx.Value(checkKey{}).(func() error); check != nil {
		return check()
	}
	return nil
}

// IsRefusal reports whether an error says that a caller may not act: it has no token that works.
func IsRefusal(err error) bool {
	return errors.Is(err, ErrUnknown) || errors.Is(err, ErrExpired) || errors.Is(err, ErrRevoked) || errors.Is(err, ErrRequired)
}

// IsEnd reports whether an error of a check ends what a request has begun. After any other error the token may still
// work: it cannot be read for a moment, such as for lack of descriptors.
func IsEnd(err error) bool {
	return IsRefusal(err) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrUnchecked)
}
