package auth

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
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

	"golang.org/x/sync/singleflight"

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
	schema    = "caisson-token/v1"
	prefix    = "caisson_"
	maxSize   = 64 << 10
	maxTokens = 10_000
	maxText   = 200
	// checkedFor is how long a token that was found valid is not read again, and so how long a revocation may take to
	// have an effect on new requests. Package server looks at the tokens of requests that take long as often, which
	// adds up to the second that is promised.
	checkedFor = time.Second / 2
	// readTime is how long a token is read. Then it counts as one that cannot be read.
	readTime = 3 * time.Second / 2
	// Texts that were not valid tokens within knownFor may be made up, as fast as their senders like. At most maxStrangers
	// of them are read at a time, since PostgreSQL has few connections, and maxWaiting wait for that.
	maxStrangers = 4
	maxWaiting   = 512
	knownFor     = time.Hour
)

var (
	encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
	form     = regexp.MustCompile(`^caisson_([a-z2-7]{13})_([a-z2-7]{52})$`)
	isID     = regexp.MustCompile(`^[a-z2-7]{13}$`).MatchString
)

// Tokens keeps tokens in a ledger, with the digest of each token's secret in place of the secret. Get one from [Open].
// It is safe for concurrent use, also by several processes. It must be closed.
type Tokens struct {
	documents *ledger.Documents
	now       func() time.Time
	change    func(ctx context.Context, tenant, id string, change func(old []byte) ([]byte, error)) error

	strangers chan struct{} // has an element for each that is being read
	waiting   atomic.Int64
	reads     singleflight.Group

	mu      sync.Mutex
	checked map[[sha256.Size]byte]checked // by the digest of the whole text, for knownFor
	swept   time.Time                     // when old elements were last removed from it
	exist   bool                          // whether a token was ever found
	looked  time.Time                     // when one was last looked for
}

// checked is a token that was found valid.
type checked struct {
	token     Token
	at, until time.Time // when, and how long it is not read again
}

// Open opens the tokens of a state folder, or of the PostgreSQL database with a URL if it is not empty. All servers on
// one ledger share its tokens. The folder must be accessible only to this user, and no tool may write to it. It is
// created with the first token. Tokens that an earlier version has stored in files of the folder are imported.
func Open(ctx context.Context, stateDir, database string) (*Tokens, error) {
	documents, err := ledger.OpenDocuments(ctx, ledger.TokenKind, stateDir, database)
	if err != nil {
		return nil, err
	}
	return &Tokens{
		documents: documents, now: time.Now, change: documents.Change, checked: map[[sha256.Size]byte]checked{},
		strangers: make(chan struct{}, maxStrangers),
	}, nil
}

// Close closes the tokens.
func (t *Tokens) Close() error { return t.documents.Close() }

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
	ids, err := t.documents.Names(ctx, noTenant)
	if err != nil {
		return "", Token{}, err
	}
	if len(ids) >= maxTokens {
		return "", Token{}, fmt.Errorf("there are too many tokens: %d", len(ids))
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

// Check returns the token that has a text. The error wraps [ErrUnknown], [ErrExpired] or [ErrRevoked] if the token does
// not work. After another error, it may work: the ledger cannot be read, or too many unknown texts are. The end of ctx
// ends only the wait for these, since a client that has gone says nothing about a token. A revocation has an effect
// within a second.
func (t *Tokens) Check(ctx context.Context, text string) (Token, error) {
	parts := form.FindStringSubmatch(text)
	if parts == nil {
		return Token{}, fmt.Errorf("%w: %w", ErrUnknown, errNotToken)
	}
	whole, now := sha256.Sum256([]byte(text)), t.now()
	c, isKnown := t.known(whole)
	if isKnown && now.Before(c.until) {
		return c.token, nil
	}
	if !isKnown {
		leave, err := t.turn(ctx)
		if err != nil {
			return Token{}, fmt.Errorf("token %s: %w", parts[1], err)
		}
		defer leave()
		now = t.now()
		if c, isKnown = t.known(whole); isKnown && now.Before(c.until) { // another request has read it meanwhile
			return c.token, nil
		}
	}
	s, err := t.readOnce(ctx, parts[1])
	if err == nil {
		err = s.refusal(parts[2], now)
	}
	switch {
	case errors.Is(err, ErrUnknown):
		t.forget(whole)
		return Token{}, err
	case errors.Is(err, ErrRevoked), errors.Is(err, ErrExpired):
		t.forget(whole)
		return s.Token, err
	case err != nil:
		return Token{}, err
	}
	t.remember(whole, s.Token, now)
	return s.Token, nil
}

// refusal returns why a text with a secret is no token that works now, or nil.
func (s *stored) refusal(secret string, now time.Time) error {
	switch {
	case subtle.ConstantTimeCompare([]byte(s.SHA256), []byte(digestOf(secret))) != 1:
		return fmt.Errorf("%w: its secret is wrong", ErrUnknown)
	case !s.Revoked.IsZero():
		return ErrRevoked
	case s.hasExpired(now):
		return ErrExpired
	}
	return nil
}

func (t Token) hasExpired(now time.Time) bool { return !t.Expires.IsZero() && !t.Expires.After(now) }

// Recheck returns why a token that Check has returned works no longer, or nil. An expiry is known without the ledger.
func (t *Tokens) Recheck(ctx context.Context, text string, token Token) error {
	if token.hasExpired(t.now()) {
		return ErrExpired
	}
	_, err := t.Check(ctx, text)
	return err
}

// Exist reports whether a token was ever created, even one that no longer works. The first token is noticed within half
// a second. Once Exist has reported true, it always does, also if the ledger is removed.
func (t *Tokens) Exist(ctx context.Context) (bool, error) {
	now := t.now()
	t.mu.Lock()
	exist, isKnown := t.exist, t.exist || !t.looked.IsZero() && now.Before(t.looked.Add(checkedFor))
	t.mu.Unlock()
	if isKnown {
		return exist, nil
	}
	found, err, _ := t.reads.Do("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTime)
		defer cancel()
		ids, err := t.documents.Names(ctx, noTenant)
		if err != nil {
			return false, err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.exist, t.looked = t.exist || len(ids) > 0, now
		return t.exist, nil
	})
	return found.(bool), err
}

// known returns a token that was found valid not long ago.
func (t *Tokens) known(whole [sha256.Size]byte) (checked, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.checked[whole]
	return c, ok
}

func (t *Tokens) forget(whole [sha256.Size]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.checked, whole)
}

func (t *Tokens) remember(whole [sha256.Size]byte, token Token, now time.Time) {
	until := now.Add(checkedFor)
	if !token.Expires.IsZero() && token.Expires.Before(until) {
		until = token.Expires
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.swept) > knownFor/60 {
		t.swept = now
		maps.DeleteFunc(t.checked, func(_ [sha256.Size]byte, c checked) bool { return now.Sub(c.at) > knownFor })
	}
	t.checked[whole] = checked{token, now, until}
}

// turn waits until one more unknown text may be read. leave must be called afterwards.
func (t *Tokens) turn(ctx context.Context) (leave func(), err error) {
	leave = func() { <-t.strangers }
	select {
	case t.strangers <- struct{}{}:
		return leave, nil
	default:
	}
	if t.waiting.Add(1) > maxWaiting { // each holds its request
		t.waiting.Add(-1)
		return nil, errManyStrangers
	}
	defer t.waiting.Add(-1)
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	select {
	case t.strangers <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", errManyStrangers, ctx.Err())
	}
}

var errManyStrangers = errors.New("too many unknown tokens are read")

// readOnce reads a token, for all who need it at the same time.
func (t *Tokens) readOnce(ctx context.Context, id string) (stored, error) {
	found, err, _ := t.reads.Do(id, func() (any, error) { return t.read(context.WithoutCancel(ctx), id) })
	s, _ := found.(stored)
	return s, err
}

func (t *Tokens) read(ctx context.Context, id string) (stored, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	content, err := t.documents.Read(ctx, noTenant, id)
	if errors.Is(err, ledger.ErrNotFound) {
		return stored{}, fmt.Errorf("%w: %s", ErrUnknown, id)
	}
	if err != nil {
		return stored{}, fmt.Errorf("token %s: %w", id, err)
	}
	return decode(id, content)
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
	maps.DeleteFunc(t.checked, func(_ [sha256.Size]byte, c checked) bool { return c.token.ID == id })
	return s.Token, nil
}
