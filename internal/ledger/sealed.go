package ledger

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// ErrSealed means that a stored run is encrypted, and that the keys in the options do not decrypt it.
var ErrSealed = errors.New("the run is encrypted with another key")

// Sealer encrypts and decrypts stored runs. It must be safe for concurrent use.
type Sealer interface {
	Seal(content []byte) ([]byte, error)
	Open(sealed []byte) ([]byte, error)
}

// sealedMark is how a text begins that is encrypted. JSON never does.
const sealedMark = "sealed:"

// seal returns the stored text of the content, the answers or an event of a run.
func (l *Ledger) seal(content []byte) (string, error) {
	if l.options.RunKeys == nil {
		return string(content), nil
	}
	sealed, err := l.options.RunKeys.Seal(content)
	return sealedMark + base64.StdEncoding.EncodeToString(sealed), err
}

// unseal reverses seal. Texts that were stored without keys are returned unchanged.
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
