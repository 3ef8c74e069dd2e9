package secrets

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/caisson-run/caisson/internal/agefile"
	"github.com/caisson-run/caisson/internal/hostfile"
	"github.com/caisson-run/caisson/manifests"
)

// Limits on the size of sources, in bytes.
const (
	maxFile = 64 << 10
	maxAge  = 1 << 20
)

// sources reads values. It decrypts each age file only once.
type sources struct {
	lookup func(string) (string, bool)
	ages   map[ageFile]map[string]string
}

// reading is the result of reading a source for a grant: a value, or the reason why there is none.
type reading struct {
	value   string
	missing string
	note    string // what the operator should know about the source
}

func (s *sources) read(grant manifests.SecretGrant) (reading, error) {
	from := grant.From
	var r reading
	var err error
	switch {
	case from.Env != "":
		return s.readEnv(from.Env), nil
	case from.File != "":
		r, err = readFile(from.File)
	default:
		r, err = s.readAge(grant)
	}
	if err != nil {
		return reading{}, &Error{Name: grant.Name, Origin: grant.Origin, Kind: ErrSource, Message: err.Error()}
	}
	return r, nil
}

func (s *sources) readEnv(name string) reading {
	if s.lookup != nil {
		switch value, set := s.lookup(name); {
		case set && value != "":
			return reading{value: value}
		case set:
			return reading{missing: "the environment variable " + name + " is empty"}
		}
	}
	return reading{missing: "the environment variable " + name + " is not set"}
}

func readFile(name string) (reading, error) {
	data, note, err := hostfile.ReadPrivate(name, maxFile)
	if err != nil {
		return reading{}, err
	}
	text := strings.TrimSuffix(string(data), "\n")
	if len(text) < len(data) {
		text = strings.TrimSuffix(text, "\r")
	}
	return reading{value: text, note: note}, nil
}

// ageFile is an encrypted file and the file with its key.
type ageFile struct{ path, identity string }

// keyPattern matches a name in an age file.
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
	key := cmp.Or(grant.From.Key, grant.Name)
	switch value, set := values[key]; {
	case !set:
		return reading{missing: "the age file has no " + key}, nil
	case value == "":
		return reading{missing: key + " is empty in the age file"}, nil
	default:
		return reading{value: value}, nil
	}
}

// open decrypts the file.
func (f ageFile) open() (map[string]string, error) {
	keys, err := agefile.ReadKeys(f.identity)
	if err != nil {
		return nil, err
	}
	sealed, _, err := hostfile.ReadPrivate(f.path, maxAge)
	if err != nil {
		return nil, err
	}
	content, err := keys.Open(sealed)
	if errors.Is(err, agefile.ErrOtherKey) {
		return nil, fmt.Errorf("no key in %s opens %s", f.identity, f.path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is %w", f.path, err)
	}
	values, err := parseLines(string(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	return values, nil
}

// parseLines parses lines of NAME=value. It skips empty lines and lines that begin with #. A value is everything after
// the first =, unmodified. Errors contain the number of a line and none of its content.
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
