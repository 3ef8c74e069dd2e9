package auth

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/tooltest"
)

func empty(t testing.TB) (*Tokens, *tooltest.Clock) {
	t.Helper()
	c := tooltest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	tokens := In(filepath.Join(t.TempDir(), "tokens"))
	tokens.now = c.Now
	return tokens, c
}

func created(t testing.TB, tokens *Tokens, token Token) (string, Token) {
	t.Helper()
	text, made := noerr.Get2(tokens.Create(token))(t)
	return text, made
}

var reader = Token{Name: "a page", Tenant: "acme", User: "ada", Scopes: []Scope{Read}, Context: map[string]string{"project_id": "demo"}, Agent: "researcher"}

func TestTokensStandForCallers(t *testing.T) {
	tokens, _ := empty(t)
	require.ErrorIs(t, noerr.Error(tokens.Check("caisson_"+strings.Repeat("a", 13)+"_"+strings.Repeat("a", 52))), ErrUnknown, "there is no folder yet")
	text, made := created(t, tokens, reader)
	for _, same := range []*Tokens{tokens, In(tokens.Dir())} { // in this process, and in another
		found := noerr.Get(same.Check(text))(t)
		assert.Equal(t, made, found)
		caller := found.Caller()
		assert.Equal(t, Caller{ID: made.ID, Tenant: "acme", User: "ada", Scopes: []Scope{Read}, Context: map[string]string{"project_id": "demo"}, Agent: "researcher"}, caller)
		assert.True(t, caller.May(Read))
		assert.False(t, caller.May(Call))
	}
	list := noerr.Get(tokens.List())(t)
	assert.Equal(t, []Token{made}, list)
}

// TestAttackStolenFolder: a stored token does not let a thief in.
func TestAttackStolenFolder(t *testing.T) {
	tokens, _ := empty(t)
	text, made := created(t, tokens, reader)
	content := noerr.Get(os.ReadFile(filepath.Join(tokens.Dir(), fileOf(made.ID))))(t)
	secret := text[strings.LastIndex(text, "_")+1:]
	assert.NotContains(t, string(content), secret)
	s := noerr.Decode[stored](t, content)
	for _, guess := range []string{s.SHA256, s.SHA256[:52], encoding.EncodeToString([]byte(s.SHA256))[:52], strings.Repeat("a", 52)} {
		require.ErrorIs(t, noerr.Error(tokens.Check(prefix+made.ID+"_"+guess)), ErrUnknown)
	}
	_, err := tokens.Check(text) // the control
	require.NoError(t, err)
	info := noerr.Get(os.Stat(tokens.Dir()))(t)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

// TestTokensEnd: a token works until it expires or is revoked, and then in no process.
func TestTokensEnd(t *testing.T) {
	tokens, now := empty(t)
	short, _ := created(t, tokens, Token{Scopes: []Scope{Call}, Expires: now.Now().Add(time.Minute)})
	long, revoked := created(t, tokens, Token{Scopes: []Scope{Call}})
	for _, text := range []string{short, long} {
		noerr.Get(tokens.Check(text))(t)
	}
	now.Pass(time.Minute - time.Millisecond)
	noerr.Get(tokens.Check(short))(t)
	now.Pass(time.Millisecond) // less than a check is remembered for
	require.ErrorIs(t, noerr.Error(tokens.Check(short)), ErrExpired)

	other := In(tokens.Dir())
	other.now = now.Now
	noerr.Get(other.Check(long))(t)
	noerr.Get(tokens.Revoke(revoked.ID))(t)
	require.ErrorIs(t, noerr.Error(tokens.Check(long)), ErrRevoked)
	now.Pass(checkedFor)
	require.ErrorIs(t, noerr.Error(other.Check(long)), ErrRevoked, "another process hears of it within a second")

	again := noerr.Get(tokens.Revoke(revoked.ID))(t)
	assert.Equal(t, now.Now().Add(-checkedFor), again.Revoked, "revoking it again changes nothing")
	for _, id := range []string{"", "aaaaaaaaaaaaa", "../../../etc/x", "AAAAAAAAAAAAA"} {
		require.ErrorIs(t, noerr.Error(tokens.Revoke(id)), ErrUnknown)
	}
}

// TestAttackRevokedOnAFullDisk: a token can be revoked on a full disk, which a caller may have filled. It stays in the
// list, so that a server with this token alone is not open when it is started again. Whoever reads its file while it is
// written over finds no token that works. The control is a token that cannot be created.
func TestAttackRevokedOnAFullDisk(t *testing.T) {
	tokens, now := empty(t)
	text, made := created(t, tokens, reader)
	tokens.write = func(*os.Root, string, []byte) error { return syscall.ENOSPC }
	_, _, err := tokens.Create(reader)
	require.ErrorIs(t, err, syscall.ENOSPC)
	path := filepath.Join(tokens.Dir(), fileOf(made.ID))
	before := noerr.Get(os.ReadFile(path))(t)
	noerr.Get(tokens.Revoke(made.ID))(t)
	now.Pass(checkedFor)
	for _, same := range []*Tokens{tokens, In(tokens.Dir())} {
		require.ErrorIs(t, noerr.Error(same.Check(text)), ErrRevoked)
		assert.True(t, noerr.Get(same.Exist())(t))
	}
	list := noerr.Get(tokens.List())(t)
	require.Len(t, list, 1)
	assert.False(t, list[0].Revoked.IsZero())
	after := noerr.Get(os.ReadFile(path))(t)
	for length := len(before); length < len(after); length++ {
		require.NoError(t, os.WriteFile(path, after[:length], 0o600))
		require.ErrorIs(t, noerr.Error(In(tokens.Dir()).Check(text)), ErrDamaged, "%s", after[:length])
	}
	require.NoError(t, os.WriteFile(path, before, 0o600))
	noerr.Get(In(tokens.Dir()).Check(text))(t) // the control
}

func TestTokensThatAreRefused(t *testing.T) {
	tokens, now := empty(t)
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
		_, _, err := tokens.Create(token)
		require.ErrorAs(t, err, new(*Error), want)
		assert.ErrorContains(t, err, want)
	}
	_, _, err := tokens.Create(Token{Name: "a\nb", Expires: now.Now()})
	var invalid *Error
	require.ErrorAs(t, err, &invalid)
	assert.Equal(t, []string{"a token needs at least one scope", "it would expire at once", "the name is not one line of at most 200 bytes"}, invalid.Problems)
	list := noerr.Get(tokens.List())(t)
	assert.Empty(t, list)
}

// TestDamagedFiles: a file that cannot be read is not a token, and hides no other token.
func TestDamagedFiles(t *testing.T) {
	tokens, now := empty(t)
	good, _ := created(t, tokens, reader)
	text, made := created(t, tokens, reader)
	path := filepath.Join(tokens.Dir(), fileOf(made.ID))
	whole := noerr.Get(os.ReadFile(path))(t)
	for name, content := range map[string]string{
		"empty": "", "half": string(whole[:len(whole)/2]), "another's": strings.Replace(string(whole), made.ID, "aaaaaaaaaaaaa", 1),
		"of another schema": strings.Replace(string(whole), schema, "caisson-token/v9", 1), "no digest": `{"schema":"` + schema + `","id":"` + made.ID + `","sha256":""}`,
		"with more": strings.Replace(string(whole), `"name"`, `"admin":true,"name"`, 1),
	} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		now.Pass(time.Hour)
		_, err := tokens.Check(text)
		require.ErrorIs(t, err, ErrDamaged, name)
		require.ErrorContains(t, err, filepath.Base(path), "who mends it needs the name")
		noerr.Get(tokens.Check(good))(t)
		list, err := tokens.List()
		require.ErrorIs(t, err, ErrDamaged)
		assert.Len(t, list, 1)
	}
}

// TestTokensAtOnce: tokens are created, checked and revoked by many at once.
func TestTokensAtOnce(t *testing.T) {
	tokens, _ := empty(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				text, made, err := tokens.Create(reader)
				assert.NoError(t, err)
				_, err = tokens.Check(text)
				assert.NoError(t, err)
				_, err = tokens.Revoke(made.ID)
				assert.NoError(t, err)
				_, err = tokens.Check(text)
				assert.ErrorIs(t, err, ErrRevoked)
			}
		})
	}
	all.Wait()
	list := noerr.Get(tokens.List())(t)
	assert.Len(t, list, 160)
}

// FuzzCheck: no text but a token's own is taken.
func FuzzCheck(f *testing.F) {
	tokens, _ := empty(f)
	text, _ := created(f, tokens, reader)
	for _, seed := range []string{"", text, text + "a", strings.ToUpper(text), text[:len(text)-1], "caisson_../../../../x_" + strings.Repeat("a", 52)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, guess string) {
		_, err := tokens.Check(guess)
		assert.Equal(t, guess == text, err == nil)
		assert.Equal(t, guess != text, errors.Is(err, ErrUnknown))
	})
}

func BenchmarkCheck(b *testing.B) {
	tokens, _ := empty(b)
	tokens.now = time.Now
	text, _ := created(b, tokens, reader)
	for b.Loop() {
		if _, err := tokens.Check(text); err != nil {
			b.Fatal(err)
		}
	}
}

// TestExist: the first token is noticed within half a second, whoever creates it, and counts for ever.
func TestExist(t *testing.T) {
	tokens, now := empty(t)
	exist := func() bool {
		found := noerr.Get(tokens.Exist())(t)
		return found
	}
	assert.False(t, exist(), "there is no folder yet")
	_, made := created(t, In(tokens.Dir()), Token{Scopes: []Scope{Read}}) // by another process
	assert.False(t, exist(), "the folder was searched a moment ago")
	now.Pass(checkedFor)
	assert.True(t, exist())
	require.NoError(t, os.Remove(filepath.Join(tokens.Dir(), fileOf(made.ID))))
	now.Pass(checkedFor)
	assert.True(t, exist())
	same := In(tokens.Dir())
	found := noerr.Get(same.Exist())(t)
	assert.False(t, found, "another process has never seen it")
	require.NoError(t, os.Chmod(tokens.Dir(), 0o755)) //nolint:gosec // that is the fault
	_, err := In(tokens.Dir()).Exist()
	require.Error(t, err)
	assert.NotErrorIs(t, err, ErrUnknown)
}

// TestExpiryWithoutTheFile: an expiry is noticed although the token's file cannot be read.
func TestExpiryWithoutTheFile(t *testing.T) {
	tokens, clock := empty(t)
	expiring := reader
	expiring.Expires = clock.Now().Add(time.Minute)
	text, token := created(t, tokens, expiring)
	require.NoError(t, tokens.Recheck(text, token))
	file := filepath.Join(tokens.Dir(), fileOf(token.ID))
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Mkdir(file, 0o700))
	clock.Pass(time.Second)
	err := tokens.Recheck(text, token)
	require.Error(t, err)
	assert.NotErrorIs(t, err, ErrExpired, "the control: it may still work")
	clock.Pass(time.Minute)
	err = tokens.Recheck(text, token)
	assert.ErrorIs(t, err, ErrExpired)
}
