package ledger_test

import (
	"context"
	"crypto/sha256"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/noerr"
)

// key returns the key of a request of a tenant's.
func key(tenant, text string) ledger.Key {
	return ledger.Key{
		Tenant: tenant, ID: sha256.Sum256([]byte(tenant + "/" + text)), Body: sha256.Sum256([]byte("body")), Keep: time.Hour,
		Keys: 1000, KeptAnswer: 1 << 20,
	}
}

// taken takes a key, which must be in a state.
func taken(t *testing.T, l *ledger.Ledger, k ledger.Key, want ledger.KeyState) ledger.TakenKey {
	t.Helper()
	found := noerr.Get(l.TakeKey(t.Context(), k))(t)
	require.Equal(t, want, found.State)
	assert.Equal(t, want == ledger.KeyTaken, found.Holder != nil)
	return found
}

func TestKeys(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		first, second := opened(t, ledger.Options{Location: location}), opened(t, ledger.Options{Location: location})
		held := taken(t, first, key("acme", "a"), ledger.KeyTaken).Holder
		taken(t, second, key("acme", "a"), ledger.KeyPending)
		taken(t, second, key("evil", "a"), ledger.KeyTaken)
		other := key("acme", "a")
		other.Body[0]++
		taken(t, second, other, ledger.KeyDiffers)
		require.NoError(t, held.Drop(t.Context()))
		held = taken(t, second, other, ledger.KeyTaken).Holder
		require.NoError(t, second.Intend(held.With(t.Context()), intended(1)))
		require.NoError(t, held.Answer(t.Context(), []byte("done")))
		for _, l := range []*ledger.Ledger{first, second} {
			assert.Equal(t, "done", string(taken(t, l, other, ledger.KeyAnswered).Answer))
			taken(t, l, key("acme", "a"), ledger.KeyDiffers)
		}
		appended(t, second, intended(1))

		short := key("acme", "short")
		short.Keep = time.Millisecond
		require.NoError(t, taken(t, first, short, ledger.KeyTaken).Holder.Answer(t.Context(), nil))
		time.Sleep(10 * time.Millisecond)
		taken(t, second, short, ledger.KeyTaken)
	})
}

// TestAttackKeysOfDeadWriters: who answers a request with a key is stopped for longer than its lease, and goes on when
// another process has taken the request over, or when nobody knows what its calls have done. It makes no call that
// another makes, too. The control is one that goes on in time.
func TestAttackKeysOfDeadWriters(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		stopped, next := opened(t, ledger.Options{Location: location}), opened(t, ledger.Options{Location: location})
		before := taken(t, stopped, key("acme", "before"), ledger.KeyTaken).Holder
		after := taken(t, stopped, key("acme", "after"), ledger.KeyTaken).Holder
		require.NoError(t, stopped.Intend(after.With(t.Context()), intended(1)), "the control")

		executed(t, location, "update writers set until = 0")
		taken(t, next, key("acme", "before"), ledger.KeyTaken)
		assert.Equal(t, id(1), taken(t, next, key("acme", "after"), ledger.KeyUnknown).CallID)

		require.Error(t, stopped.Intend(before.With(t.Context()), intended(2)))
		require.Error(t, before.Answer(t.Context(), []byte("late")))
		require.Error(t, stopped.Intend(before.With(t.Context()), intended(3)), "it has answered nothing")
		require.Error(t, before.Drop(t.Context()))
		taken(t, next, key("acme", "before"), ledger.KeyPending)
		require.NoError(t, after.Answer(t.Context(), []byte("late")), "nobody else has answered")
		assert.Equal(t, "late", string(taken(t, next, key("acme", "after"), ledger.KeyAnswered).Answer))
	})
}

// TestAttackManyKeys: a tenant's keys, and the bytes of their answers, are bounded, and only its own are forgotten.
func TestAttackManyKeys(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		l := opened(t, ledger.Options{Location: location})
		require.NoError(t, taken(t, l, key("acme", "a"), ledger.KeyTaken).Holder.Answer(t.Context(), make([]byte, 1000)))
		for n := range 300 {
			k := key("evil", strconv.Itoa(n))
			k.Keys = 100
			if n >= 150 {
				k.KeptAnswer = 10_000
			}
			k.Keep += time.Duration(n) * time.Second
			require.NoError(t, taken(t, l, k, ledger.KeyTaken).Holder.Answer(t.Context(), make([]byte, 1000)))
			other := key("other", strconv.Itoa(n)) // whose keys are looked through, too
			other.Keys, other.KeptAnswer = k.Keys, k.KeptAnswer
			taken(t, l, other, ledger.KeyTaken)
		}
		left := 0
		for n := range 300 {
			if noerr.Get(l.TakeKey(t.Context(), key("evil", strconv.Itoa(n))))(t).State == ledger.KeyAnswered {
				left++
			}
		}
		assert.Less(t, left, 10+64+1)
		taken(t, l, key("acme", "a"), ledger.KeyAnswered)
	})
}

// TestAttackAbandonedKeys: a client goes away while its key is being taken. The next request with the key is answered.
// The control is a client that stays.
func TestAttackAbandonedKeys(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		l := opened(t, ledger.Options{Location: location})
		taken(t, l, key("acme", "control"), ledger.KeyTaken)
		taken(t, l, key("acme", "control"), ledger.KeyPending)
		for n := range 200 {
			ctx, cancel := context.WithCancel(t.Context())
			go cancel()
			k := key("acme", strconv.Itoa(n))
			if found, err := l.TakeKey(ctx, k); err == nil {
				require.NoError(t, found.Holder.Drop(t.Context()))
			}
			taken(t, l, k, ledger.KeyTaken)
		}
	})
}

// TestAttackForgottenKeys: the key of a run is forgotten while its calls go on. They are made all the same.
func TestAttackForgottenKeys(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		l := opened(t, ledger.Options{Location: location})
		held := taken(t, l, key("acme", "run"), ledger.KeyTaken).Holder
		require.NoError(t, held.Answer(t.Context(), []byte("accepted")))
		executed(t, location, "delete from keys")
		require.NoError(t, l.Intend(held.With(t.Context()), intended(1)))
		appended(t, l, intended(1))
	})
}
