package auth

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/folder"
	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/tooltest"
)

// opened opens the tokens of a state folder, as another process does, until the end of the test.
func opened(t testing.TB, state string) *Tokens {
	t.Helper()
	tokens := noerr.Get(Open(t.Context(), state, ""))(t)
	t.Cleanup(func() { assert.NoError(t, tokens.Close()) })
	return tokens
}

func empty(t testing.TB) (tokens *Tokens, state string, now *tooltest.Clock) {
	t.Helper()
	c := tooltest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	state = filepath.Join(t.TempDir(), "state")
	tokens = opened(t, state)
	tokens.now = c.Now
	return tokens, state, c
}

// damage replaces what is stored of a token.
func damage(t *testing.T, tokens *Tokens, id, content string) {
	t.Helper()
	require.NoError(t, tokens.documents.Change(t.Context(), noTenant, id, func([]byte) ([]byte, error) {
		return []byte(content), nil
	}))
}

func created(t testing.TB, tokens *Tokens, token Token) (string, Token) {
	t.Helper()
	text, made := noerr.Get2(tokens.Create(t.Context(), token))(t)
	return text, made
}

var reader = Token{Name: "a page", Tenant: "acme", User: "ada", Scopes: []Scope{Read}, Context: map[string]string{"project_id": "demo"}, Agent: "researcher"}

func TestTokensStandForCallers(t *testing.T) {
	tokens, state, _ := empty(t)
	require.ErrorIs(t, noerr.Error(tokens.Check(t.Context(), "caisson_"+strings.Repeat("a", 13)+"_"+strings.Repeat("a", 52))), ErrUnknown, "there is no ledger yet")
	text, made := created(t, tokens, reader)
	for _, same := range []*Tokens{tokens, opened(t, state)} { // in this process, and in another
		found := noerr.Get(same.Check(t.Context(), text))(t)
		assert.Equal(t, made, found)
		caller := found.Caller()
		assert.Equal(t, Caller{ID: made.ID, Tenant: "acme", User: "ada", Scopes: []Scope{Read}, Context: map[string]string{"project_id": "demo"}, Agent: "researcher"}, caller)
		assert.True(t, caller.May(Read))
		assert.False(t, caller.May(Call))
	}
	list := noerr.Get(tokens.List(t.Context()))(t)
	assert.Equal(t, []Token{made}, list)
}

// TestAttackStolenFolder: nothing in the folder of the ledger lets a thief in.
func TestAttackStolenFolder(t *testing.T) {
	tokens, state, _ := empty(t)
	text, made := created(t, tokens, reader)
	secret := text[strings.LastIndex(text, "_")+1:]
	digest, found := digestOf(secret), 0
	require.NoError(t, filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info := noerr.Get(d.Info())(t)
		if d.IsDir() {
			assert.Equal(t, os.FileMode(0o700), info.Mode().Perm(), path)
			return nil
		}
		content := noerr.Get(os.ReadFile(path))(t)
		assert.NotContains(t, string(content), secret, path)
		found += strings.Count(string(content), digest)
		return nil
	}))
	assert.Positive(t, found, "the control: what is stored can be found")
	for _, guess := range []string{digest, digest[:52], encoding.EncodeToString([]byte(digest))[:52], strings.Repeat("a", 52)} {
		require.ErrorIs(t, noerr.Error(tokens.Check(t.Context(), prefix+made.ID+"_"+guess)), ErrUnknown)
	}
	_, err := tokens.Check(t.Context(), text) // the control
	require.NoError(t, err)
}

// TestTokensEnd: a token works until it expires or is revoked, and then in no process.
func TestTokensEnd(t *testing.T) {
	tokens, state, now := empty(t)
	short, _ := created(t, tokens, Token{Scopes: []Scope{Call}, Expires: now.Now().Add(time.Minute)})
	long, revoked := created(t, tokens, Token{Scopes: []Scope{Call}})
	for _, text := range []string{short, long} {
		noerr.Get(tokens.Check(t.Context(), text))(t)
	}
	now.Pass(time.Minute - time.Millisecond)
	noerr.Get(tokens.Check(t.Context(), short))(t)
	now.Pass(time.Millisecond) // less than a check is remembered for
	require.ErrorIs(t, noerr.Error(tokens.Check(t.Context(), short)), ErrExpired)

	other := opened(t, state)
	other.now = now.Now
	noerr.Get(other.Check(t.Context(), long))(t)
	noerr.Get(tokens.Revoke(t.Context(), revoked.ID))(t)
	require.ErrorIs(t, noerr.Error(tokens.Check(t.Context(), long)), ErrRevoked)
	now.Pass(checkedFor)
	require.ErrorIs(t, noerr.Error(other.Check(t.Context(), long)), ErrRevoked, "another process hears of it within a second")

	again := noerr.Get(tokens.Revoke(t.Context(), revoked.ID))(t)
	assert.Equal(t, now.Now().Add(-checkedFor), again.Revoked, "revoking it again changes nothing")
	for _, id := range []string{"", "aaaaaaaaaaaaa", "../../../etc/x", "AAAAAAAAAAAAA"} {
		require.ErrorIs(t, noerr.Error(tokens.Revoke(t.Context(), id)), ErrUnknown)
	}
}

// TestAttackRevokedOnAFullDisk: a token can be revoked on a full disk, which a caller may have filled. It stays in the
// list, so that a server with this token alone is not open when it is started again. The control is a token that cannot
// be created.
func TestAttackRevokedOnAFullDisk(t *testing.T) {
	tokens, state, now := empty(t)
	text, made := created(t, tokens, reader)
	spare := filepath.Join(ledger.In(state), "ledger.spare")
	tokens.change = func(ctx context.Context, tenant, id string, change func([]byte) ([]byte, error)) error {
		if _, err := os.Stat(spare); err == nil {
			return ledger.ErrFull
		}
		return tokens.documents.Change(ctx, tenant, id, change)
	}
	_, _, err := tokens.Create(t.Context(), reader)
	require.ErrorIs(t, err, ledger.ErrFull)
	noerr.Get(tokens.Revoke(t.Context(), made.ID))(t)
	now.Pass(checkedFor)
	for _, same := range []*Tokens{tokens, opened(t, state)} {
		require.ErrorIs(t, noerr.Error(same.Check(t.Context(), text)), ErrRevoked)
		assert.True(t, noerr.Get(same.Exist(t.Context()))(t))
	}
	list := noerr.Get(tokens.List(t.Context()))(t)
	require.Len(t, list, 1)
	assert.False(t, list[0].Revoked.IsZero())
}

func TestTokensThatAreRefused(t *testing.T) {
	tokens, _, now := empty(t)
	for want, token := range map[string]Token{
		"at least one scope":     {},
		`no scope "write"`:       {Scopes: []Scope{Read, "write"}},
		"expire at once":         {Scopes: []Scope{Read}, Expires: now.Now()},
		"the name is not one":    {Scopes: []Scope{Read}, Name: "a\nb"},
		"the tenant is not one":  {Scopes: []Scope{Read}, Tenant: "\xff"},
		"the user is not one":    {Scopes: []Scope{Read}, User: strings.Repeat("a", 201)},
		`context value ""`:       {Scopes: []Scope{Read}, Context: map[string]string{"": "x"}},
		`context value "a"`:      {Scopes: []Scope{Read}, Context: map[string]string{"a": strings.Repeat("x", 4097)}},
		"the agent is not one l": {Scopes: []Scope{Read}, Agent: "a\u2028b"},
	} {
		_, _, err := tokens.Create(t.Context(), token)
		require.ErrorAs(t, err, new(*Error), want)
		assert.ErrorContains(t, err, want)
	}
	_, _, err := tokens.Create(t.Context(), Token{Name: "a\nb", Expires: now.Now()})
	var invalid *Error
	require.ErrorAs(t, err, &invalid)
	assert.Equal(t, []string{"a token needs at least one scope", "it would expire at once", "the name is not one line of at most 200 bytes"}, invalid.Problems)
	list := noerr.Get(tokens.List(t.Context()))(t)
	assert.Empty(t, list)
}

// TestDamagedTokens: what cannot be read is not a token, and hides no other token. It can be revoked.
func TestDamagedTokens(t *testing.T) {
	tokens, _, now := empty(t)
	good, _ := created(t, tokens, reader)
	text, made := created(t, tokens, reader)
	whole := string(noerr.Get(tokens.documents.Read(t.Context(), noTenant, made.ID))(t))
	for name, content := range map[string]string{
		"empty": "", "half": whole[:len(whole)/2], "another's": strings.Replace(whole, made.ID, "aaaaaaaaaaaaa", 1),
		"of another schema": strings.Replace(whole, schema, "caisson-token/v9", 1), "no digest": `{"schema":"` + schema + `","id":"` + made.ID + `","sha256":""}`,
		"with more": strings.Replace(whole, `"name"`, `"admin":true,"name"`, 1),
	} {
		damage(t, tokens, made.ID, content)
		now.Pass(time.Hour)
		_, err := tokens.Check(t.Context(), text)
		require.ErrorIs(t, err, ErrDamaged, name)
		require.ErrorContains(t, err, made.ID, "who mends it needs the id")
		noerr.Get(tokens.Check(t.Context(), good))(t)
		list, err := tokens.List(t.Context())
		require.ErrorIs(t, err, ErrDamaged)
		assert.Len(t, list, 1)
	}
	noerr.Get(tokens.Revoke(t.Context(), made.ID))(t)
	assert.Len(t, noerr.Get(tokens.List(t.Context()))(t), 2)
	require.Error(t, noerr.Error(tokens.Check(t.Context(), text)))
}

// TestUnreadableLedger: a token whose check has expired does not work while the ledger cannot be read, and is not said
// to be unknown. The control is a token that was checked a moment ago.
func TestUnreadableLedger(t *testing.T) {
	tokens, state, now := empty(t)
	text, _ := created(t, tokens, reader)
	noerr.Get(tokens.Check(t.Context(), text))(t)
	file := filepath.Join(ledger.In(state), "ledger.db")
	require.NoError(t, os.Rename(file, file+".away"))
	require.NoError(t, os.Mkdir(file, 0o700))
	noerr.Get(tokens.Check(t.Context(), text))(t)
	now.Pass(checkedFor)
	err := noerr.Error(tokens.Check(t.Context(), text))
	require.Error(t, err)
	for _, kind := range []error{ErrUnknown, ErrExpired, ErrRevoked, ErrDamaged} {
		require.NotErrorIs(t, err, kind)
	}
	require.Error(t, noerr.Error(tokens.Exist(t.Context())))
	require.NoError(t, os.Remove(file))
	require.ErrorIs(t, noerr.Error(tokens.Check(t.Context(), text)), ErrUnknown, "a ledger that was removed has no tokens")
	require.NoError(t, os.Rename(file+".away", file))
	noerr.Get(tokens.Check(t.Context(), text))(t)
}

// TestRevocationsAtOnce: of processes that revoke a token at the same time, all succeed, and the first sets the time.
func TestRevocationsAtOnce(t *testing.T) {
	tokens, state, now := empty(t)
	_, made := created(t, tokens, reader)
	var all sync.WaitGroup
	for i := range 8 {
		own := opened(t, state)
		own.now = func() time.Time { return now.Now().Add(time.Duration(i) * time.Hour) }
		all.Go(func() {
			for range 10 {
				_, err := own.Revoke(t.Context(), made.ID)
				assert.NoError(t, err)
			}
		})
	}
	all.Wait()
	first := noerr.Get(tokens.Revoke(t.Context(), made.ID))(t).Revoked
	for range 3 {
		assert.Equal(t, first, noerr.Get(opened(t, state).Revoke(t.Context(), made.ID))(t).Revoked)
	}
}

// TestTokensAtOnce: tokens are created, checked and revoked by many at once.
func TestTokensAtOnce(t *testing.T) {
	tokens, _, _ := empty(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				text, made, err := tokens.Create(t.Context(), reader)
				assert.NoError(t, err)
				_, err = tokens.Check(t.Context(), text)
				assert.NoError(t, err)
				_, err = tokens.Revoke(t.Context(), made.ID)
				assert.NoError(t, err)
				_, err = tokens.Check(t.Context(), text)
				assert.ErrorIs(t, err, ErrRevoked)
			}
		})
	}
	all.Wait()
	list := noerr.Get(tokens.List(t.Context()))(t)
	assert.Len(t, list, 160)
}

// FuzzCheck: no text but a token's own is taken.
func FuzzCheck(f *testing.F) {
	tokens, _, _ := empty(f)
	text, _ := created(f, tokens, reader)
	for _, seed := range []string{"", text, text + "a", strings.ToUpper(text), text[:len(text)-1], "caisson_../../../../x_" + strings.Repeat("a", 52)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, guess string) {
		_, err := tokens.Check(t.Context(), guess)
		assert.Equal(t, guess == text, err == nil)
		assert.Equal(t, guess != text, errors.Is(err, ErrUnknown))
	})
}

func BenchmarkCheck(b *testing.B) {
	tokens, _, now := empty(b)
	text, made := created(b, tokens, reader)
	for name, test := range map[string]struct {
		text  string
		works bool
		pause time.Duration
	}{
		"recent": {text, true, 0}, "read": {text, true, checkedFor},
		"wrong":   {prefix + made.ID + "_" + strings.Repeat("a", 52), false, 0},
		"unknown": {prefix + strings.Repeat("a", 13) + "_" + strings.Repeat("a", 52), false, 0},
	} {
		b.Run(name, func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					now.Pass(test.pause)
					if _, err := tokens.Check(b.Context(), test.text); (err == nil) != test.works {
						b.Error(err)
					}
				}
			})
		})
	}
}

// TestExist: the first token is noticed within half a second, whoever creates it, and counts for ever.
func TestExist(t *testing.T) {
	tokens, state, now := empty(t)
	exist := func() bool {
		found := noerr.Get(tokens.Exist(t.Context()))(t)
		return found
	}
	assert.False(t, exist(), "there is no ledger yet")
	assert.NoDirExists(t, state, "reading creates none")
	_, made := created(t, opened(t, state), Token{Scopes: []Scope{Read}}) // by another process
	assert.False(t, exist(), "it was looked for a moment ago")
	now.Pass(checkedFor)
	assert.True(t, exist())
	require.NoError(t, tokens.documents.Change(t.Context(), noTenant, made.ID, func([]byte) ([]byte, error) { return nil, nil }))
	now.Pass(checkedFor)
	assert.True(t, exist())
	found := noerr.Get(opened(t, state).Exist(t.Context()))(t)
	assert.False(t, found, "another process has never seen it")
	require.NoError(t, os.Chmod(ledger.In(state), 0o755)) //nolint:gosec // that is the fault
	require.ErrorIs(t, noerr.Error(Open(t.Context(), state, "")), folder.ErrExposed)
}

// TestExpiryWithoutTheLedger: an expiry is noticed although the ledger cannot be read.
func TestExpiryWithoutTheLedger(t *testing.T) {
	tokens, state, clock := empty(t)
	expiring := reader
	expiring.Expires = clock.Now().Add(time.Minute)
	text, token := created(t, tokens, expiring)
	require.NoError(t, tokens.Recheck(t.Context(), text, token))
	file := filepath.Join(ledger.In(state), "ledger.db")
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Mkdir(file, 0o700))
	clock.Pass(time.Second)
	err := tokens.Recheck(t.Context(), text, token)
	require.Error(t, err)
	assert.NotErrorIs(t, err, ErrExpired, "the control: it may still work")
	clock.Pass(time.Minute)
	err = tokens.Recheck(t.Context(), text, token)
	assert.ErrorIs(t, err, ErrExpired)
}

// TestAttackMadeUpTokens: made-up tokens wait for the ledger, as many as it has connections. A token that was valid
// before is read nevertheless. The control is a made-up token while none waits.
func TestAttackMadeUpTokens(t *testing.T) {
	tokens, _, clock := empty(t)
	text, _ := created(t, tokens, reader)
	noerr.Get(tokens.Check(t.Context(), text))(t)
	madeUp := "caisson_" + strings.Repeat("a", 13) + "_" + strings.Repeat("a", 52)
	require.ErrorIs(t, noerr.Error(tokens.Check(t.Context(), madeUp)), ErrUnknown, "the control")
	for range maxStrangers {
		tokens.strangers <- struct{}{}
	}
	clock.Pass(2 * checkedFor)
	noerr.Get(tokens.Check(t.Context(), text))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, noerr.Error(tokens.Check(ctx, madeUp)), context.DeadlineExceeded)
	tokens.waiting.Store(maxWaiting)
	many := noerr.Error(tokens.Check(t.Context(), madeUp))
	require.ErrorIs(t, many, errManyStrangers)
	require.NotErrorIs(t, many, context.DeadlineExceeded, "it waits")
	tokens.waiting.Store(0)
	clock.Pass(2 * knownFor)
	noerr.Get(tokens.Check(t.Context(), text))(t)
	another, _ := created(t, tokens, reader)
	<-tokens.strangers
	noerr.Get(tokens.Check(t.Context(), another))(t)
	assert.Len(t, tokens.checked, 2)
	clock.Pass(knownFor + time.Second)
	noerr.Get(tokens.Check(t.Context(), another))(t)
	assert.Len(t, tokens.checked, 1, "tokens that are used no more are forgotten")
}

// TestAttackRevokedTokens: a token that was valid is revoked, and its owner sends it without end. It waits as made-up
// ones do, after it was read once. The control is that time.
func TestAttackRevokedTokens(t *testing.T) {
	tokens, state, clock := empty(t)
	text, made := created(t, tokens, reader)
	noerr.Get(tokens.Check(t.Context(), text))(t)
	noerr.Get(opened(t, state).Revoke(t.Context(), made.ID))(t) // by another process
	clock.Pass(2 * checkedFor)
	for range maxStrangers {
		tokens.strangers <- struct{}{}
	}
	require.ErrorIs(t, noerr.Error(tokens.Check(t.Context(), text)), ErrRevoked, "the control")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, noerr.Error(tokens.Check(ctx, text)), context.DeadlineExceeded)
}

// TestAttackReadsOfOneToken: many requests show one token at the same time. They share one read of it, which the token
// of another does not wait for. The control is the read's end.
func TestAttackReadsOfOneToken(t *testing.T) {
	tokens, _, clock := empty(t)
	text, made := created(t, tokens, reader)
	other, _ := created(t, tokens, reader)
	for _, one := range []string{text, other} {
		noerr.Get(tokens.Check(t.Context(), one))(t)
	}
	clock.Pass(2 * checkedFor)
	end := sync.OnceFunc(slowRead(tokens, made.ID))
	defer end()
	checked := make(chan error, 100)
	for range cap(checked) {
		go func() { checked <- noerr.Error(tokens.Check(t.Context(), text)) }()
	}
	noerr.Get(tokens.Check(t.Context(), other))(t)
	select {
	case err := <-checked:
		require.Fail(t, "a second read", "%v", err)
	case <-time.After(20 * time.Millisecond):
	}
	end()
	for range cap(checked) {
		require.NoError(t, <-checked)
	}
}

// slowRead reads a token until end is called.
func slowRead(tokens *Tokens, id string) (end func()) {
	begun, over := make(chan struct{}), make(chan struct{})
	go func() {
		_, _, _ = tokens.reads.Do(id, func() (any, error) {
			close(begun)
			<-over
			return tokens.read(context.Background(), id)
		})
	}()
	<-begun
	return func() { close(over) }
}

// TestAttackManyFirstRequests: after a start, many requests show one token, which is not known yet. When it is their
// turn, it is, and they do not read it. The control is the first of them.
func TestAttackManyFirstRequests(t *testing.T) {
	tokens, _, _ := empty(t)
	text, made := created(t, tokens, reader)
	for range maxStrangers {
		tokens.strangers <- struct{}{}
	}
	checked := make(chan error, 20)
	for range cap(checked) {
		go func() { checked <- noerr.Error(tokens.Check(t.Context(), text)) }()
	}
	require.Eventually(t, func() bool { return tokens.waiting.Load() == int64(cap(checked)) }, time.Second, time.Millisecond)
	<-tokens.strangers
	require.NoError(t, <-checked, "the control")
	defer slowRead(tokens, made.ID)()
	for range cap(checked) - 1 {
		require.NoError(t, <-checked)
	}
}

// TestAttackLookForTokens: the ledger does not answer whether there is a token. Tokens that are known work meanwhile.
// The control is the answer.
func TestAttackLookForTokens(t *testing.T) {
	tokens, _, _ := empty(t)
	text, _ := created(t, tokens, reader)
	noerr.Get(tokens.Check(t.Context(), text))(t)
	begun, over := make(chan struct{}), make(chan struct{})
	go func() {
		_, _, _ = tokens.reads.Do("", func() (any, error) {
			close(begun)
			<-over
			return true, nil
		})
	}()
	<-begun
	exist := make(chan bool, 1)
	go func() { exist <- noerr.Get(tokens.Exist(t.Context()))(t) }()
	noerr.Get(tokens.Check(t.Context(), text))(t)
	close(over)
	assert.True(t, <-exist, "the control")
}
