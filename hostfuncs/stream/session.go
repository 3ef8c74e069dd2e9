package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/caisson-run/caisson/tool"
)

// DefaultBytes is how much a call may say where nobody says otherwise.
const DefaultBytes = 256 << 10

// Options are what a [Session] is made of. The zero value lets a call say [DefaultBytes], which
// nobody sees.
type Options struct {
	// Emit shows an emission, as [tool.Host] has it: it does not wait for whoever watches. Nil:
	// nobody does.
	Emit func(emission tool.Emission) error
	// Bytes bounds the requests of a call together. If it is not positive, it is [DefaultBytes].
	Bytes int64
	// Mask takes secrets out of a text, of which it returns a part or a copy. It stops soon after ctx
	// has ended, and returns its error. Nil: there are no secrets.
	Mask func(ctx context.Context, text []byte) ([]byte, error)
}

// Session is what one guest says. It serves that guest, which is single-threaded, and is not safe
// for concurrent use.
type Session struct {
	options  Options
	left     int64 // bytes
	withheld int
}

// Open returns what one guest can say.
func Open(options Options) *Session {
	if options.Bytes <= 0 {
		options.Bytes = DefaultBytes
	}
	return &Session{options: options, left: options.Bytes}
}

// Admit takes a request of so many bytes off what the call may say, before anybody reads it: a
// request that is refused then was work, too. The error, an [*Error] of kind [ErrLimit], is for
// one that is too long for what is left; nothing is taken off for it, and a shorter one may pass.
func (s *Session) Admit(bytes int) error {
	if int64(bytes) > s.left {
		return &Error{Op: "admit", Kind: ErrLimit, Message: fmt.Sprintf("a call may say %d bytes before it has ended", s.options.Bytes), Bytes: s.options.Bytes}
	}
	s.left -= int64(bytes)
	return nil
}

// Emit shows an emission to whoever watches. It keeps no part of what emission.Data points to. The
// error is an [*Error], or that of ctx.
func (s *Session) Emit(ctx context.Context, emission tool.Emission) error {
	if err := emission.Check(); err != nil {
		return &Error{Op: "emit", Kind: ErrInvalid, Message: err.Error()}
	}
	if s.options.Emit == nil {
		return nil
	}
	shown, masked, err := s.mask(ctx, emission)
	if err != nil {
		return err
	}
	// What cannot be shown without a secret is not shown. The guest is not told: it would learn
	// that what it said holds one.
	if masked && shown.Check() != nil {
		s.withheld++
		return nil
	}
	if err := s.options.Emit(shown); err != nil {
		return notShown(err)
	}
	return nil
}

// Withheld returns how many emissions were not shown since they held a secret in a place where
// nothing could stand for it, such as within an image.
func (s *Session) Withheld() int { return s.withheld }

// mask returns the emission without secrets, and whether it had any. Data is a copy: what it was
// read from may be far longer.
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
		e.Fraction = nil // nothing can stand for a secret in a number
	}
	return e, found, nil
}

// digits returns all digits of a fraction, without an exponent, which would set them apart.
func digits(fraction *float64) []byte {
	if fraction == nil {
		return nil
	}
	return strconv.AppendFloat(nil, *fraction, 'f', -1, 64)
}
