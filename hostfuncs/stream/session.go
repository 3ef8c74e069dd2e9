package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/tool"
)

// defaultBytes is the default limit on the bytes that a call may emit.
const defaultBytes = 256 << 10

// Options configure a [Session]. With the zero value, a call may emit 256 KiB, and they are discarded.
type Options struct {
	// Emit delivers an emission. It is the function in [tool.Host], and does not block on the
	// consumer. If it is nil, emissions are discarded.
	Emit func(emission tool.Emission) error
	// Bytes limits the total size of the requests of a call. If it is not positive, the limit is 256 KiB.
	Bytes int64
	// Mask returns text without secrets, as a subslice or a copy. It returns the error of ctx soon
	// after ctx is done. If it is nil, there are no secrets.
	Mask func(ctx context.Context, text []byte) ([]byte, error)
}

// Session checks and delivers the emissions of one guest. Guests are single-threaded, so a Session
// is not safe for concurrent use.
type Session struct {
	options  Options
	left     int64 // bytes
	withheld int
}

func Open(options Options) *Session {
	if options.Bytes <= 0 {
		options.Bytes = defaultBytes
	}
	return &Session{options: options, left: options.Bytes}
}

// Admit charges the size of a request to the call's limit. Call it before reading the request:
// a request that is then rejected has cost work too. If less is left, Admit charges nothing and
// returns an [*hostfuncs.Error] of kind [hostfuncs.ErrLimit]; a shorter request may still be admitted.
func (s *Session) Admit(bytes int) error {
	if int64(bytes) > s.left {
		return &hostfuncs.Error{Op: "admit", Kind: hostfuncs.ErrLimit, Limit: "output", Value: s.options.Bytes,
			Message: fmt.Sprintf("a call may say %d bytes before it has ended", s.options.Bytes)}
	}
	s.left -= int64(bytes)
	return nil
}

// Emit delivers an emission to [Options.Emit]. It does not retain emission.Data. The error is an
// [*hostfuncs.Error], or the error of ctx.
func (s *Session) Emit(ctx context.Context, emission tool.Emission) error {
	if err := emission.Check(); err != nil {
		return &hostfuncs.Error{Op: "emit", Kind: hostfuncs.ErrInvalid, Message: err.Error()}
	}
	if s.options.Emit == nil {
		return nil
	}
	shown, masked, err := s.mask(ctx, emission)
	if err != nil {
		return err
	}
	// The emission is not valid without the secret, so it is withheld. Do not tell the guest, which
	// would learn that its emission holds a secret.
	if masked && shown.Check() != nil {
		s.withheld++
		return nil
	}
	if err := s.options.Emit(shown); err != nil {
		return notShown(err)
	}
	return nil
}

// Withheld returns the number of emissions that were not delivered because they held a secret where
// no placeholder can replace it, such as within an image.
func (s *Session) Withheld() int { return s.withheld }

// mask returns the emission without secrets, and whether it had any. Data is a copy, since the
// slice may be part of a far longer array.
func (s *Session) mask(ctx context.Context, e tool.Emission) (_ tool.Emission, found bool, err error) {
	if s.options.Mask == nil {
		e.Data = bytes.Clone(e.Data)
		return e, false, nil
	}
	var masked [4][]byte
	var had [4]bool
	for i, part := range [][]byte{[]byte(e.Text), e.Data, []byte(e.MIMEType), digits(e.Fraction)} {
		if len(part) == 0 {
			continue
		}
		if masked[i], err = s.options.Mask(ctx, part); err != nil {
			return tool.Emission{}, false, err
		}
		had[i] = !bytes.Equal(masked[i], part)
		found = found || had[i]
	}
	e.Text, e.Data, e.MIMEType = string(masked[0]), json.RawMessage(bytes.Clone(masked[1])), string(masked[2])
	if had[3] {
		e.Fraction = nil // a number has no room for a placeholder
	}
	return e, found, nil
}

// digits returns all digits of a fraction. It uses no exponent, so that the digits stay adjacent.
func digits(fraction *float64) []byte {
	if fraction == nil {
		return nil
	}
	return strconv.AppendFloat(nil, *fraction, 'f', -1, 64)
}

// notShown returns the error for an emission that Options.Emit did not accept.
func notShown(err error) *hostfuncs.Error {
	var known *tool.Error
	if errors.As(err, &known) && known.Kind == tool.Cancelled {
		return &hostfuncs.Error{Op: "emit", Kind: hostfuncs.ErrUnavailable, Message: "the call has ended", Cause: err}
	}
	return &hostfuncs.Error{Op: "emit", Kind: hostfuncs.ErrHost, Message: "the emission could not be shown", Cause: err}
}
