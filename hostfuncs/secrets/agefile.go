package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/caisson-run/caisson/manifests"
)

// ageFile is an encrypted file and the file with the key to it.
type ageFile struct{ path, identity string }

// keyPattern is a name in an age file.
var keyPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (s *sources) readAge(grant manifests.SecretGrant) (reading, error) {
	from := ageFile{grant.From.Age, grant.From.Identity}
	values, known := s.ages[from]
	if !known {
		var err error
		if values, err = from.open(); err != nil {
			return reading{}, err
		}
		s.ages[from] = values
	}
	key := grant.From.Key
	if key == "" {
		key = grant.Name
	}
	switch value, set := values[key]; {
	case !set:
		return reading{missing: "the age file has no " + key}, nil
	case value == "":
		return reading{missing: key + " is empty in the age file"}, nil
	default:
		return reading{value: value}, nil
	}
}

// open decrypts the file. What the age package says of a key or a file that it refuses may
// hold parts of it, and is dropped.
func (f ageFile) open() (map[string]string, error) {
	identities, err := f.identities()
	if err != nil {
		return nil, err
	}
	sealed, _, err := readPrivate(f.path, maxAge)
	if err != nil {
		return nil, err
	}
	var source io.Reader = bytes.NewReader(sealed)
	if bytes.HasPrefix(bytes.TrimLeft(sealed, " \t\r\n"), []byte(armor.Header)) {
		source = armor.NewReader(source)
	}
	opened, err := age.Decrypt(source, identities...)
	if err != nil {
		if unmatched := (*age.NoIdentityMatchError)(nil); errors.As(err, &unmatched) {
			return nil, fmt.Errorf("no key in %s opens %s", f.identity, f.path)
		}
		return nil, fmt.Errorf("%s is not a valid age file", f.path)
	}
	content, err := io.ReadAll(opened)
	if err != nil {
		return nil, fmt.Errorf("%s is not a valid age file", f.path)
	}
	values, err := parseLines(string(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	return values, nil
}

func (f ageFile) identities() ([]age.Identity, error) {
	text, _, err := readPrivate(f.identity, maxIdentity)
	if err != nil {
		return nil, err
	}
	identities, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s is not a file of age keys (AGE-SECRET-KEY-…)", f.identity)
	}
	return identities, nil
}

// parseLines reads lines of NAME=value. Empty lines and lines that begin with # hold none.
// A value is everything behind the first =, as it stands. Its errors hold the number of a
// line and nothing that stands in it.
func parseLines(text string) (map[string]string, error) {
	values := map[string]string{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if trimmed := strings.TrimLeft(line, " \t"); trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		key, value, found := strings.Cut(line, "=")
		if !found || !keyPattern.MatchString(key) {
			return nil, fmt.Errorf("line %d is not NAME=value", number)
		}
		if _, twice := values[key]; twice {
			return nil, fmt.Errorf("line %d gives a name a second value", number)
		}
		values[key] = value
	}
	return values, nil
}
