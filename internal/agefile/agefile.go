// Package agefile reads the keys of the age format, and encrypts and decrypts with them. Its errors never contain parts
// of a key or of a decrypted file.
package agefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/caisson-run/caisson/internal/hostfile"
)

// The errors of this package, for errors.Is. Others come from package hostfile.
var (
	ErrKeys     = errors.New("not a file of age keys (AGE-SECRET-KEY-…)")
	ErrOtherKey = errors.New("it is encrypted for other keys")
	ErrDamaged  = errors.New("not a valid age file")
)

const maxKeys = 64 << 10 // bytes of a file of keys

// binaryHeader is how a file begins that is not armored.
const binaryHeader = "age-encryption.org/"

// Overhead is the maximum by which encryption makes a file of up to 64 MiB longer.
const Overhead = 32 << 10

// Keys are private keys from a file. They are safe for concurrent use.
type Keys struct {
	// File is the path of the file.
	File       string
	identities []age.Identity
}

// ReadKeys reads the keys in a file, which only its owner may be able to change.
func ReadKeys(file string) (*Keys, error) {
	text, _, err := hostfile.ReadPrivate(file, maxKeys)
	if err != nil {
		return nil, err
	}
	identities, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s is %w", file, ErrKeys)
	}
	return &Keys{file, identities}, nil
}

// IsEncrypted reports whether a file's content is in the age format.
func IsEncrypted(content []byte) bool {
	return bytes.HasPrefix(content, []byte(binaryHeader)) || isArmored(content)
}

func isArmored(content []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(content, " \t\r\n"), []byte(armor.Header))
}

// Open decrypts content with any of the keys.
func (k *Keys) Open(content []byte) ([]byte, error) {
	var source io.Reader = bytes.NewReader(content)
	if isArmored(content) {
		source = armor.NewReader(source)
	}
	opened, err := age.Decrypt(source, k.identities...)
	if _, unmatched := errors.AsType[*age.NoIdentityMatchError](err); unmatched {
		return nil, fmt.Errorf("no key in %s opens it: %w", k.File, ErrOtherKey)
	}
	if err == nil {
		content, err = io.ReadAll(opened)
	}
	if err != nil {
		return nil, ErrDamaged
	}
	return content, nil
}

// Seal encrypts content for the first of the keys. Further ones only open what was encrypted before the first was put
// in front of them.
func (k *Keys) Seal(content []byte) ([]byte, error) {
	var recipient age.Recipient
	switch first := k.identities[0].(type) { // ParseIdentities returns at least one
	case *age.X25519Identity:
		recipient = first.Recipient()
	case *age.HybridIdentity:
		recipient = first.Recipient()
	default:
		return nil, fmt.Errorf("the first key in %s cannot encrypt: want one of age-keygen", k.File)
	}
	var sealed bytes.Buffer
	out, err := age.Encrypt(&sealed, recipient)
	if err == nil {
		_, err = out.Write(content)
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		return nil, err
	}
	return sealed.Bytes(), nil
}
