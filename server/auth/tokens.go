package auth

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/folder"
)

// The errors of this package, for errors.Is. Other errors come from the operating system. A caller whose token is
// refused must not be told which of the first three it was.
var (
	ErrUnknown  = errors.New("no such token")
	ErrExpired  = errors.New("the token has expired")
	ErrRevoked  = errors.New("the token was revoked")
	ErrDamaged  = errors.New("the token's file is damaged")
	errNotToken = errors.New("it does not have the form of a token")
)

// Error lists the problems of a token that cannot be created.
type Error struct{ Problems []string }

// Error returns the problems in one line.
func (e *Error) Error() string { return "invalid token: " + strings.Join(e.Problems, "; ") }

// Token is the stored form of a token: the caller that it identifies, without the text that the caller sends.
type Token struct {
	// ID names the token to people and in logs. It is not secret.
	ID string `json:"id"`
	// Name says what the token is for, in one line of at most 80 characters.
	Name    string            `json:"name"`
	Tenant  string            `json:"tenant"`
	User    string            `json:"user"`
	Scopes  []Scope           `json:"scopes"`
	Context map[string]string `json:"context"`
	Agent   string            `json:"agent"`
	Created time.Time         `json:"created"`
	// Expires is when it stops working. The zero time is never.
	Expires time.Time `json:"expires,omitzero"`
	// Revoked is when it was revoked, or the zero time.
	Revoked time.Time `json:"revoked,omitzero"`
}

// Caller returns who shows the token.
func (t Token) Caller() Caller {
	return Caller{ID: t.ID, Tenant: t.Tenant, User: t.User, Scopes: t.Scopes, Context: t.Context, Agent: t.Agent}
}

// stored is the content of a file.
type stored struct {
	Schema string `json:"schema"`
	// SHA256 is the digest of the secret part, in hexadecimal. The secret has 256 random bits, so
	// it cannot be guessed, and a slow hash would add nothing.
	SHA256 string `json:"sha256"`
	Token
}

const (
	schema    = "caisson-token/v1"
	prefix    = "caisson_"
	maxFile   = 64 << 10
	maxTokens = 10_000
	maxText   = 200
	// checkedFor is how long a token that was found valid is not read again, and so how long a revocation may take to
	// have an effect on new requests. Package server looks at the tokens of requests that take long as often, which
	// adds up to the second that is promised.
	checkedFor = time.Second / 2
)

var (
	encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
	form     = regexp.MustCompile(`^caisson_([a-z2-7]{13})_([a-z2-7]{52})$`)
	isID     = regexp.MustCompile(`^[a-z2-7]{13}$`).MatchString
)

// Tokens keeps tokens in a private folder, one file each, with the digest of each token's secret in
// place of the secret. Get one from [In]. It is safe for concurrent use, also by several processes.
type Tokens struct {
	path  string
	now   func() time.Time
	write func(root *os.Root, name string, content []byte) error // into a new file

	mu      sync.Mutex
	checked map[[sha256.Size]byte]checked // by the digest of the whole text
	exist   bool                          // whether a token was ever found
	looked  time.Time                     // when the folder was last searched for one
}

type checked struct {
	token Token
	until time.Time
}

// In returns the tokens in a folder, which is created with the first token. The folder must be
// accessible only to this user, and no tool may write to it.
func In(path string) *Tokens {
	return &Tokens{path: path, now: time.Now, write: folder.Write, checked: map[[sha256.Size]byte]checked{}}
}

// Dir returns the folder.
func (t *Tokens) Dir() string { return t.path }

// Create stores a token and returns its text, which is not kept and cannot be had again. Its ID and
// times but Expires are set here. Nothing was stored if the error is an [*Error].
func (t *Tokens) Create(token Token) (text string, created Token, err error) {
	now := t.now().UTC().Truncate(time.Second)
	if err := token.check(now); err != nil {
		return "", Token{}, err
	}
	var random [8 + 32]byte
	_, _ = rand.Read(random[:]) // does not fail
	token.ID = encoding.EncodeToString(random[:8])
	secret := encoding.EncodeToString(random[8:])
	token.Created, token.Revoked, token.Expires = now, time.Time{}, token.Expires.UTC()
	root, err := folder.Make(t.path)
	if err != nil {
		return "", Token{}, err
	}
	defer func() { _ = root.Close() }()
	ids, err := idsIn(root)
	if err != nil {
		return "", Token{}, err
	}
	if len(ids) >= maxTokens {
		return "", Token{}, fmt.Errorf("there are too many tokens: %d", len(ids))
	}
	content, err := stored{schema, digestOf(secret), token}.content()
	if err != nil {
		return "", Token{}, err
	}
	if err := t.write(root, fileOf(token.ID), content); err != nil {
		return "", Token{}, err
	}
	return prefix + token.ID + "_" + secret, token, nil
}

func digestOf(secret string) string {
	digest := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(digest[:])
}

// check reports everything that is wrong with a token to be created.
func (t Token) check(now time.Time) error {
	var problems []string
	invalid := func(format string, arguments ...any) { problems = append(problems, fmt.Sprintf(format, arguments...)) }
	for name, text := range map[string]string{"name": t.Name, "tenant": t.Tenant, "user": t.User, "agent": t.Agent} {
		if !isLine(text) {
			invalid("the %s is not one line of at most %d bytes", name, maxText)
		}
	}
	for name, value := range t.Context {
		if name == "" || !isLine(name) || !utf8.ValidString(value) || len(value) > 4096 {
			invalid("the context value %q is not a name with a value of at most 4096 bytes", name)
		}
	}
	if len(t.Scopes) == 0 {
		invalid("a token needs at least one scope")
	}
	for _, scope := range t.Scopes {
		if !slices.Contains(Scopes(), scope) {
			invalid("there is no scope %q; the scopes are %s, %s, %s and %s", scope, Read, Call, Approve, Admin)
		}
	}
	if !t.Expires.IsZero() && !t.Expires.After(now) {
		invalid("it would expire at once")
	}
	if len(problems) == 0 {
		return nil
	}
	slices.Sort(problems)
	return &Error{problems}
}

func isLine(text string) bool {
	return utf8.ValidString(text) && len(text) <= maxText && !strings.ContainsFunc(text,
		func(r rune) bool { return r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' })
}

// content returns the content of a token's file.
func (s stored) content() ([]byte, error) {
	content, err := json.Marshal(s)
	if err == nil && len(content) > maxFile {
		err = &Error{[]string{fmt.Sprintf("it has %d bytes, more than %d", len(content), maxFile)}}
	}
	return content, err
}

func fileOf(id string) string { return "token." + id + folder.Suffix }

// Check returns the token that has a text. The error wraps [ErrUnknown], [ErrExpired] or [ErrRevoked] if
// the token is none that works. A revocation has an effect within a second.
func (t *Tokens) Check(text string) (Token, error) {
	parts := form.FindStringSubmatch(text)
	if parts == nil {
		return Token{}, fmt.Errorf("%w: %w", ErrUnknown, errNotToken)
	}
	whole, now := sha256.Sum256([]byte(text)), t.now()
	if token, ok := t.recent(whole, now); ok {
		return token, nil
	}
	s, err := t.read(parts[1])
	if err != nil {
		return Token{}, err
	}
	if subtle.ConstantTimeCompare([]byte(s.SHA256), []byte(digestOf(parts[2]))) != 1 {
		return Token{}, fmt.Errorf("%w: its secret is wrong", ErrUnknown)
	}
	switch {
	case !s.Revoked.IsZero():
		return s.Token, ErrRevoked
	case s.hasExpired(now):
		return s.Token, ErrExpired
	}
	t.remember(whole, s.Token, now)
	return s.Token, nil
}

func (t Token) hasExpired(now time.Time) bool { return !t.Expires.IsZero() && !t.Expires.After(now) }

// Recheck returns why a token that Check has returned works no longer, or nil. An expiry is known without the file.
func (t *Tokens) Recheck(text string, token Token) error {
	if token.hasExpired(t.now()) {
		return ErrExpired
	}
	_, err := t.Check(text)
	return err
}

// Exist reports whether a token was ever created, even one that no longer works. The first token is noticed within half
// a second. Once Exist has reported true, it always does, also if the files are removed.
func (t *Tokens) Exist() (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if t.exist || !t.looked.IsZero() && now.Before(t.looked.Add(checkedFor)) {
		return t.exist, nil
	}
	root, err := folder.Open(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		t.looked = now
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = root.Close() }()
	ids, err := idsIn(root)
	if err != nil {
		return false, err
	}
	t.exist, t.looked = len(ids) > 0, now
	return t.exist, nil
}

// recent returns a token that was found valid a moment ago.
func (t *Tokens) recent(whole [sha256.Size]byte, now time.Time) (Token, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.checked[whole]
	return c.token, ok && now.Before(c.until)
}

func (t *Tokens) remember(whole [sha256.Size]byte, token Token, now time.Time) {
	until := now.Add(checkedFor)
	if !token.Expires.IsZero() && token.Expires.Before(until) {
		until = token.Expires
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.checked, func(_ [sha256.Size]byte, c checked) bool { return !now.Before(c.until) })
	t.checked[whole] = checked{token, until}
}

func (t *Tokens) read(id string) (stored, error) {
	root, err := folder.Open(t.path)
	if err != nil {
		return stored{}, unknown(id, err)
	}
	defer func() { _ = root.Close() }()
	return read(root, id)
}

func read(root *os.Root, id string) (stored, error) {
	content, err := folder.Read(root, fileOf(id), maxFile)
	if err != nil {
		return stored{}, unknown(id, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	var s stored
	if err := decoder.Decode(&s); err != nil {
		return stored{}, fmt.Errorf("%w: %s: %w", ErrDamaged, fileOf(id), err)
	}
	if s.Schema != schema || s.ID != id || len(s.SHA256) != 2*sha256.Size {
		return stored{}, fmt.Errorf("%w: %s: it is another token's, or has not the schema %s", ErrDamaged, fileOf(id), schema)
	}
	return s, nil
}

func unknown(id string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", ErrUnknown, id)
	}
	return fmt.Errorf("token %s: %w", id, err)
}

// List returns all tokens, oldest first. Damaged files are in the error, beside the others.
func (t *Tokens) List() ([]Token, error) {
	root, err := folder.Open(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return []Token{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	ids, err := idsIn(root)
	if err != nil {
		return nil, err
	}
	tokens, problems := []Token{}, []error{}
	for _, id := range ids {
		switch s, err := read(root, id); {
		case errors.Is(err, ErrUnknown): // removed meanwhile
		case err != nil:
			problems = append(problems, err)
		default:
			tokens = append(tokens, s.Token)
		}
	}
	slices.SortStableFunc(tokens, func(a, b Token) int { return a.Created.Compare(b.Created) })
	return tokens, errors.Join(problems...)
}

func idsIn(root *os.Root) ([]string, error) {
	files, err := folder.Look(root)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if id := strings.TrimSuffix(strings.TrimPrefix(file, "token."), folder.Suffix); isID(id) && file == fileOf(id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Revoke makes a token stop working; its file stays, so that the list shows when that was. Revoking it
// again changes nothing. The error wraps [ErrUnknown] if there is none with this id.
func (t *Tokens) Revoke(id string) (Token, error) {
	if !isID(id) {
		return Token{}, fmt.Errorf("%w: an id has 13 lower-case letters and digits", ErrUnknown)
	}
	root, err := folder.Open(t.path)
	if err != nil {
		return Token{}, unknown(id, err)
	}
	defer func() { _ = root.Close() }()
	s, err := read(root, id)
	if err != nil {
		return Token{}, err
	}
	if s.Revoked.IsZero() {
		s.Revoked = t.now().UTC().Truncate(time.Second)
		content, err := s.content()
		if err == nil {
			err = t.revoke(root, id, content)
		}
		if err != nil {
			return Token{}, err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.checked, func(_ [sha256.Size]byte, c checked) bool { return c.token.ID == id })
	return s.Token, nil
}

// revoke stores a token that was revoked. On a full disk it writes over the token's file. Whoever reads a part of it
// finds no token that works. Removing the file would be as easy, but a server without tokens is open when it starts.
func (t *Tokens) revoke(root *os.Root, id string, content []byte) error {
	err := t.write(root, fileOf(id), content)
	if err == nil {
		return nil
	}
	if over := folder.Overwrite(root, fileOf(id), content); over != nil {
		return errors.Join(err, over)
	}
	return nil
}
