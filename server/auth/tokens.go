package auth

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/ledger"
)

// The errors of this package, for errors.Is. Other errors mean that the ledger cannot be read or written. A caller
// whose token is refused must not be told which of the first three it was.
var (
	ErrUnknown  = errors.New("no such token")
	ErrExpired  = errors.New("the token has expired")
	ErrRevoked  = errors.New("the token was revoked")
	ErrDamaged  = errors.New("the stored token is damaged")
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

// stored is what is stored of a token.
type stored struct {
	Schema string `json:"schema"`
	// SHA256 is the digest of the secret part, in hexadecimal. The secret has 256 random bits, so
	// it cannot be guessed, and a slow hash would add nothing.
	SHA256 string `json:"sha256"`
	Token
}

const (
	schema  = "caisson-token/v1"
	prefix  = "caisson_"
	maxSize = 64 << 10
	maxText = 200
)

var (
	encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
	isID     = regexp.MustCompile(`^[a-z2-7]{13}$`).MatchString
)

// Tokens keeps tokens in a ledger, with the digest of each token's secret in place of the secret. Get one from [Open].
// It is safe for concurrent use, also by several processes. It must be closed.
type Tokens struct {
	documents *ledger.Documents
	now       func() time.Time
	most      int // of them
	some      func(ctx context.Context, tenant string, ids []string) (map[string][]byte, error)
	change    func(ctx context.Context, tenant, id string, change func(old []byte) ([]byte, error)) error

	base    context.Context // of reads; it ends when the tokens are closed
	stop    context.CancelFunc
	readers sync.WaitGroup
	waiting atomic.Int64 // requests that wait for a read
	exist   atomic.Bool  // whether a token was ever found

	mu        sync.Mutex
	last      map[string]*content // each token as it was when it was last read, by its id
	looked    time.Time           // when a read has looked for any token
	current   *reading            // the read that has begun; nil if none has
	next      *reading            // the read that has not begun; nil if no request waits for it
	isReading bool                // readAll runs
	changes   int                 // of tokens by this process, which last must not be older than
}

// Open opens the tokens of a state folder, or of the PostgreSQL database with a URL if it is not empty. All servers on
// one ledger share its tokens. The folder must be accessible only to this user, and no tool may write to it. It is
// created with the first token. Tokens that an earlier version has stored in files of the folder are imported.
func Open(ctx context.Context, stateDir, database string) (*Tokens, error) {
	documents, err := ledger.OpenDocuments(ctx, ledger.TokenKind, stateDir, database)
	if err != nil {
		return nil, err
	}
	t := &Tokens{documents: documents, now: time.Now, most: 10_000, some: documents.Some, change: documents.Change,
		last: map[string]*content{}}
	t.base, t.stop = context.WithCancel(context.WithoutCancel(ctx))
	return t, nil
}

// Close closes the tokens. It must not be called while they are used.
func (t *Tokens) Close() error {
	t.stop()
	t.readers.Wait()
	return t.documents.Close()
}

// Create stores a token and returns its text, which is not kept and cannot be had again. Its ID and
// times but Expires are set here. Nothing was stored if the error is an [*Error].
func (t *Tokens) Create(ctx context.Context, token Token) (text string, created Token, err error) {
	now := t.now().UTC().Truncate(time.Second)
	if err := token.check(now); err != nil {
		return "", Token{}, err
	}
	var random [8 + 32]byte
	_, _ = rand.Read(random[:]) // does not fail
	token.ID = encoding.EncodeToString(random[:8])
	secret := encoding.EncodeToString(random[8:])
	token.Created, token.Revoked, token.Expires = now, time.Time{}, token.Expires.UTC()
	if err := t.makeRoom(ctx, now); err != nil {
		return "", Token{}, err
	}
	content, err := stored{schema, digestOf(secret), token}.content()
	if err == nil {
		err = t.change(ctx, noTenant, token.ID, func([]byte) ([]byte, error) { return content, nil })
	}
	if err != nil {
		return "", Token{}, err
	}
	return prefix + token.ID + "_" + secret, token, nil
}

// listedFor is how long a token is listed at least after it was revoked or has expired.
const listedFor = 30 * 24 * time.Hour

// makeRoom removes tokens that ended long ago if there are too many.
func (t *Tokens) makeRoom(ctx context.Context, now time.Time) error {
	if ids, err := t.documents.Names(ctx, noTenant); err != nil || len(ids) < t.most {
		return err
	}
	all, err := t.documents.All(ctx, noTenant)
	if err != nil {
		return err
	}
	left, before := len(all), now.Add(-listedFor)
	for id, content := range all {
		s, err := decode(id, content)
		if err != nil || !s.hasExpired(before) && (s.Revoked.IsZero() || s.Revoked.After(before)) {
			continue
		}
		if err := t.change(ctx, noTenant, id, func([]byte) ([]byte, error) { return nil, nil }); err != nil {
			return err
		}
		left--
	}
	if left >= t.most {
		return fmt.Errorf("there are too many tokens: %d", left)
	}
	return nil
}

// noTenant is the tenant of the documents: the id names a token among those of all tenants.
const noTenant = ""

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

// content returns the stored form.
func (s stored) content() ([]byte, error) {
	content, err := json.Marshal(s)
	if err == nil && len(content) > maxSize {
		err = &Error{[]string{fmt.Sprintf("it has %d bytes, more than %d", len(content), maxSize)}}
	}
	return content, err
}

func decode(id string, content []byte) (stored, error) {
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	var s stored
	if err := decoder.Decode(&s); err != nil {
		return stored{}, fmt.Errorf("%w: %s: %w", ErrDamaged, id, err)
	}
	if s.Schema != schema || s.ID != id || len(s.SHA256) != 2*sha256.Size {
		return stored{}, fmt.Errorf("%w: %s: it is another token's, or has not the schema %s", ErrDamaged, id, schema)
	}
	return s, nil
}

// List returns all tokens, oldest first. The error names damaged ones, in addition to the others.
func (t *Tokens) List(ctx context.Context) ([]Token, error) {
	all, err := t.documents.All(ctx, noTenant)
	if err != nil {
		return nil, err
	}
	tokens, problems := []Token{}, []error{}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		s, err := decode(id, all[id])
		if err != nil {
			problems = append(problems, err)
			continue
		}
		tokens = append(tokens, s.Token)
	}
	slices.SortStableFunc(tokens, func(a, b Token) int { return a.Created.Compare(b.Created) })
	return tokens, errors.Join(problems...)
}

// Revoke makes a token stop working; it is stored nevertheless, so that the list shows when that was. Revoking it again
// changes nothing. It replaces a damaged token. On a full disk, it succeeds while a server runs. The error wraps
// [ErrUnknown] if there is none with this id.
func (t *Tokens) Revoke(ctx context.Context, id string) (Token, error) {
	if !isID(id) {
		return Token{}, fmt.Errorf("%w: an id has 13 lower-case letters and digits", ErrUnknown)
	}
	var s stored
	revoke := func(old []byte) (content []byte, err error) {
		if old == nil {
			return nil, fmt.Errorf("%w: %s", ErrUnknown, id)
		}
		now := t.now().UTC().Truncate(time.Second)
		if s, err = decode(id, old); err != nil { // whoever it was for, it counts as one that was revoked from now on
			s = stored{schema, strings.Repeat("0", 2*sha256.Size), Token{ID: id, Name: "damaged", Created: now}}
		}
		if !s.Revoked.IsZero() {
			return old, nil
		}
		s.Revoked = now
		return s.content()
	}
	err := t.change(ctx, noTenant, id, revoke)
	if errors.Is(err, ledger.ErrFull) && t.documents.MakeRoom() {
		err = t.change(ctx, noTenant, id, revoke)
	}
	if err != nil {
		return Token{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.last)
	t.changes++ // it has an effect at once in this process
	return s.Token, nil
}
