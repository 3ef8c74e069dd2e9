package breaker

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrInvalidOptions means that breakers cannot be made of the options.
	ErrInvalidOptions = errors.New("invalid options")
	// ErrOpen means that a key may not be called. The error is an [*OpenError].
	ErrOpen = errors.New("circuit is open")
)

// Options say when a circuit opens. Where a number is zero, the one that is named beside it
// is taken. A negative number is an error.
type Options struct {
	Failures int           // in a row, until the circuit opens: 5
	Open     time.Duration // for how long, until a probe is let through: 30 s
}

func (o Options) complete() (Options, error) {
	switch {
	case o.Failures < 0:
		return Options{}, fmt.Errorf("breaker: new: %w: Failures is negative", ErrInvalidOptions)
	case o.Open < 0:
		return Options{}, fmt.Errorf("breaker: new: %w: Open is negative", ErrInvalidOptions)
	}
	if o.Failures == 0 {
		o.Failures = 5
	}
	if o.Open == 0 {
		o.Open = 30 * time.Second
	}
	return o, nil
}

// OpenError says that a key may not be called. It wraps [ErrOpen].
type OpenError struct {
	Failures int // in a row, with those of probes
	// Until is when the next probe is let through. While one is on its way, that may be
	// earlier.
	Until time.Time
}

// Error returns the number of failures and the time.
func (e *OpenError) Error() string {
	return fmt.Sprintf("breaker: %v after %d failures in a row, until %s", ErrOpen, e.Failures, e.Until.Format(time.RFC3339))
}

// Unwrap returns ErrOpen.
func (e *OpenError) Unwrap() error { return ErrOpen }
