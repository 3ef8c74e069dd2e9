package secrets

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	goruntime "runtime"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/caisson-run/caisson/internal/hostfile"
	"github.com/caisson-run/caisson/manifests"
)

// Limits on the size of sources, in bytes.
const (
	maxFile     = 64 << 10
	maxAge      = 1 << 20
	maxIdentity = 64 << 10
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
	data, note, err := readPrivate(name, maxFile)
	if err != nil {
		return reading{}, err
	}
	text := strings.TrimSuffix(string(data), "\n")
	if len(text) < len(data) {
		text = strings.TrimSuffix(text, "\r")
	}
	return reading{value: text, note: note}, nil
}

// readPrivate reads a regular file of at most limit bytes that only its owner can change. The note is set if other
// users can read the file. Errors never contain any of the content.
func readPrivate(name string, limit int64) (data []byte, note string, err error) {
	file, info, err := hostfile.Open(name, hostfile.Follow)
	if errors.Is(err, hostfile.ErrIrregular) {
		return nil, "", fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return nil, "", unreadable(name, err)
	}
	defer file.Close()
	if note, err = checkMode(name, info.Mode()); err != nil {
		return nil, "", err
	}
	data, err = io.ReadAll(io.LimitReader(file, limit+1))
	switch {
	case err != nil:
		return nil, "", unreadable(name, err)
	case int64(len(data)) > limit:
		return nil, "", fmt.Errorf("%s is larger than %d KiB", name, limit>>10)
	}
	return data, note, nil
}

func checkMode(name string, mode fs.FileMode) (note string, err error) {
	switch permissions := mode.Perm(); {
	case goruntime.GOOS == "windows": // Windows has access control lists instead
		return "", nil
	case permissions&0o022 != 0:
		return "", fmt.Errorf("%s can be changed by others (mode %04o); take that away: chmod go-w", name, permissions)
	case permissions&0o044 != 0:
		return fmt.Sprintf("its file can be read by others (mode %04o)", permissions), nil
	default:
		return "", nil
	}
}

// unreadable returns the error for a file that cannot be read, with the system's reason.
func unreadable(name string, err error) error {
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		err = failed.Err
	}
	return fmt.Errorf("%s cannot be read: %w", name, err)
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

// open decrypts the file. It drops the errors of package age, which may contain parts of the key or the file.
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
