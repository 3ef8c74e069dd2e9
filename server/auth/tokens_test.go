package auth

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
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
	assert.True(t, noerr.Get(tokens.Exist(t.Context()))(t), "one was found")
	require.NoError(t, os.Remove(file))
	require.ErrorIs(t, noerr.Error(tokens.Check(t.Context(), text)), errNoLedger, "it may have been moved")
	require.ErrorIs(t, noerr.Error(opened(t, state).Check(t.Context(), text)), ErrUnknown, "there are none")
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
	text, _ := created(t, tokens, expiring)
	noerr.Get(tokens.Check(t.Context(), text))(t)
	file := filepath.Join(ledger.In(state), "ledger.db")
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Mkdir(file, 0o700))
	clock.Pass(time.Second)
	_, err := tokens.Check(t.Context(), text)
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrExpired, "the control: it may still work")
	clock.Pass(time.Minute)
	require.ErrorIs(t, noerr.Error(tokens.Check(t.Context(), text)), ErrExpired)
}

// slowly has reads of tokens wait until go on is called, once for each. It returns how many have begun.
func slowly(tokens *Tokens) (begun *atomic.Int64, goOn func()) {
	begun, turns := new(atomic.Int64), make(chan struct{})
	tokens.some = func(ctx context.Context, tenant string, ids []string) (map[string][]byte, error) {
		begun.Add(1)
		select {
		case <-turns:
			return tokens.documents.Some(ctx, tenant, ids)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return begun, func() { turns <- struct{}{} }
}

const madeUp = "caisson_aaaaaaaaaaaaa_" + "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// TestAttackMadeUpTokens: many requests show made-up tokens, and some tokens that work and are not known yet. They share
// two reads: the one that has begun, and the next one. Afterwards made-up ones are read no more often than the pause
// between reads allows, and no more than so many requests wait. The controls are the answers to all of them.
func TestAttackMadeUpTokens(t *testing.T) {
	tokens, _, clock := empty(t)
	text, _ := created(t, tokens, reader)
	begun, goOn := slowly(tokens)
	first, others := make(chan error, 1), make(chan error, 200)
	go func() { first <- noerr.Error(tokens.Check(t.Context(), madeUp)) }()
	require.Eventually(t, func() bool { return begun.Load() == 1 }, time.Second, time.Millisecond)
	for i := range cap(others) {
		go func() {
			_, err := tokens.Check(t.Context(), []string{madeUp, text}[i%2])
			others <- err
		}()
	}
	require.Eventually(t, func() bool { return tokens.waiting.Load() == int64(1+cap(others)) }, time.Second, time.Millisecond)
	goOn()
	require.ErrorIs(t, <-first, ErrUnknown)
	goOn()
	unknown := 0
	for range cap(others) {
		if err := <-others; err != nil {
			require.ErrorIs(t, err, ErrUnknown)
			unknown++
		}
	}
	assert.Equal(t, cap(others)/2, unknown)
	assert.Equal(t, int64(2), begun.Load())

	tokens.waiting.Store(maxWaiting)
	require.ErrorIs(t, noerr.Error(tokens.Check(t.Context(), madeUp)), errManyWaiting)
	tokens.waiting.Store(0)
	noerr.Get(tokens.Check(t.Context(), text))(t)
	clock.Pass(2 * checkedFor)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, noerr.Error(tokens.Check(ctx, text)), context.DeadlineExceeded, "it may have been revoked")
	goOn()

	reads := new(atomic.Int64)
	tokens.some = func(ctx context.Context, tenant string, ids []string) (map[string][]byte, error) {
		reads.Add(1)
		return tokens.documents.Some(ctx, tenant, ids)
	}
	start := time.Now()
	for range 20 {
		require.ErrorIs(t, noerr.Error(tokens.Check(t.Context(), madeUp)), ErrUnknown)
	}
	assert.LessOrEqual(t, reads.Load(), int64(time.Since(start)/minReadPause)+1)
}

// TestNewTokens: a token that was created a moment ago works, although tokens were read a moment before.
func TestNewTokens(t *testing.T) {
	tokens, state, _ := empty(t)
	for range 3 {
		require.ErrorIs(t, noerr.Error(tokens.Check(t.Context(), madeUp)), ErrUnknown)
		text, _ := created(t, opened(t, state), reader) // by another process
		noerr.Get(tokens.Check(t.Context(), text))(t)
	}
}

// TestAttackRevokedTokens: a token is revoked, and its owner sends it without end. So does one whose secret is wrong.
// They are refused without a read. The control is a token that works, which waits for one.
func TestAttackRevokedTokens(t *testing.T) {
	tokens, state, clock := empty(t)
	text, made := created(t, tokens, reader)
	working, _ := created(t, tokens, reader)
	noerr.Get(tokens.Check(t.Context(), text))(t)
	stored := string(noerr.Get(tokens.documents.Read(t.Context(), noTenant, made.ID))(t))
	noerr.Get(opened(t, state).Revoke(t.Context(), made.ID))(t) // by another process
	clock.Pass(checkedFor)
	require.ErrorIs(t, noerr.Error(tokens.Check(t.Context(), text)), ErrRevoked)
	clock.Pass(2 * checkedFor)
	begun, goOn := slowly(tokens)
	require.ErrorIs(t, noerr.Error(tokens.Check(t.Context(), text)), ErrRevoked)
	require.ErrorIs(t, noerr.Error(tokens.Check(t.Context(), prefix+made.ID+madeUp[len(prefix)+len(made.ID):])), ErrUnknown)
	assert.Zero(t, begun.Load())
	checked := make(chan error, 1)
	go func() { checked <- noerr.Error(tokens.Check(t.Context(), working)) }()
	require.Eventually(t, func() bool { return begun.Load() == 1 }, time.Second, time.Millisecond)
	goOn()
	require.NoError(t, <-checked)

	tokens.some = tokens.documents.Some
	damage(t, tokens, made.ID, stored)
	clock.Pass(2 * refusedFor)
	noerr.Get(tokens.Check(t.Context(), text))(t) // an older copy of the ledger was restored
}

// TestTooManyTokens: tokens that ended long ago make room for new ones. Those that work, or ended not long ago, stay.
func TestTooManyTokens(t *testing.T) {
	tokens, _, clock := empty(t)
	tokens.most = 4
	expires := reader
	expires.Expires = clock.Now().Add(time.Hour)
	created(t, tokens, expires)
	_, revoked := created(t, tokens, reader)
	text, _ := created(t, tokens, reader)
	noerr.Get(tokens.Revoke(t.Context(), revoked.ID))(t)
	created(t, tokens, reader)
	clock.Pass(listedFor - time.Minute)
	noerr.Get(tokens.Check(t.Context(), text))(t)
	require.ErrorContains(t, noerr.Error2(tokens.Create(t.Context(), reader)), "too many")
	clock.Pass(2 * time.Hour)
	created(t, tokens, reader)
	created(t, tokens, reader)
	require.ErrorContains(t, noerr.Error2(tokens.Create(t.Context(), reader)), "too many")
	noerr.Get(tokens.Check(t.Context(), text))(t)
}

// TestUnreadableTokensAtOnce: the ledger cannot be read, and many requests wait for that. Those that wait for the next
// read do not wait for it to fail, too. The control is a read afterwards.
func TestUnreadableTokensAtOnce(t *testing.T) {
	tokens, _, _ := empty(t)
	text, _ := created(t, tokens, reader)
	fails, begun := make(chan struct{}), make(chan struct{})
	tokens.some = func(context.Context, string, []string) (map[string][]byte, error) {
		close(begun)
		<-fails
		return nil, errors.New("unreadable")
	}
	checked := make(chan error, 10)
	check := func() { checked <- noerr.Error(tokens.Check(t.Context(), text)) }
	go check()
	<-begun
	for range cap(checked) - 1 {
		go check()
	}
	require.Eventually(t, func() bool { return tokens.waiting.Load() == int64(cap(checked)) }, time.Second, time.Millisecond)
	close(fails)
	for range cap(checked) {
		require.ErrorContains(t, <-checked, "unreadable")
	}
	tokens.some = tokens.documents.Some
	noerr.Get(tokens.Check(t.Context(), text))(t)
}
