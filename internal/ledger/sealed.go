package ledger

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// ErrSealed means that what is kept of a run is encrypted, and cannot be decrypted with the keys in the options.
var ErrSealed = errors.New("the run is encrypted with another key")

// Sealer encrypts and decrypts what is kept of runs. It must be safe for concurrent use.
type Sealer interface {
	Seal(content []byte) ([]byte, error)
	Open(sealed []byte) ([]byte, error)
}

// sealedMark is how a text begins that is encrypted. JSON never does.
const sealedMark = "sealed:"

// seal returns what is kept of a part of a run.
func (l *Ledger) seal(content []byte) (string, error) {
	if l.options.RunKeys == nil {
		return string(content), nil
	}
	sealed, err := l.options.RunKeys.Seal(content)
	return sealedMark + base64.StdEncoding.EncodeToString(sealed), err
}

// unseal returns the part of which seal has made a text. What was kept before there were keys is as it was.
func (l *Ledger) unseal(text string) ([]byte, error) {
	encoded, isSealed := strings.CutPrefix(text, sealedMark)
	if !isSealed {
		return []byte(text), nil
	}
	if l.options.RunKeys == nil {
		return nil, ErrSealed
	}
	sealed, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	content, err := l.options.RunKeys.Open(sealed)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSealed, err)
	}
	return content, nil
}
