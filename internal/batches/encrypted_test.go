package batches

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/agefile"
	"github.com/caisson-run/caisson/internal/noerr"
)

// keysOf returns the keys in a new file with these identities.
func keysOf(t *testing.T, identities ...string) *agefile.Keys {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key.txt")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(identities, "\n")), 0o600))
	return noerr.Get(agefile.ReadKeys(file))(t)
}

// TestBatchesAreEncrypted: a file shows nothing of a batch, and the key opens it, as does a file with a newer key
// before it. The control is a batch that is kept without a key, which is read with one.
func TestBatchesAreEncrypted(t *testing.T) {
	classic, hybrid := noerr.Get(age.GenerateX25519Identity())(t).String(), noerr.Get(age.GenerateHybridIdentity())(t).String()
	for name, own := range map[string]string{"X25519": classic, "hybrid": hybrid} {
		t.Run(name, func(t *testing.T) {
			folder, batch := In(t.TempDir()), waiting(t)
			place := noerr.Get(folder.New(batch.State.ID()))(t)
			place.Encrypt(keysOf(t, own))
			require.NoError(t, place.Keep(batch))
			content := noerr.Get(os.ReadFile(place.Path()))(t)
			assert.True(t, agefile.IsEncrypted(content))
			for _, secret := range []string{"ask_user", "call_1", batch.State.ID(), schema} {
				assert.NotContains(t, string(content), secret)
			}
			require.ErrorIs(t, place.Check(), ErrOccupied)
			read := func(keys *agefile.Keys) (Batch, error) {
				again := noerr.Get(folder.Find(batch.State.ID()))(t)
				again.Encrypt(keys)
				return again.Read()
			}
			newer := noerr.Get(age.GenerateX25519Identity())(t).String()
			require.ErrorIs(t, noerr.Error(read(nil)), ErrEncrypted)
			require.ErrorIs(t, noerr.Error(read(keysOf(t, newer))), agefile.ErrOtherKey)
			for _, keys := range []*agefile.Keys{keysOf(t, own), keysOf(t, newer, own)} {
				assert.Equal(t, batch.State.Pending(), noerr.Get(read(keys))(t).State.Pending())
			}
			require.True(t, claim(t, place))
			require.NoError(t, place.End(batch.State.ID(), time.Now()))
			require.ErrorIs(t, noerr.Error(read(nil)), ErrEnded, "that it has ended is no secret")
			require.NoError(t, os.WriteFile(place.Path(), content[:len(content)-1], 0o600))
			require.ErrorIs(t, noerr.Error(read(keysOf(t, own))), agefile.ErrDamaged)

			open := waiting(t)
			keep(t, folder, open)
			control := noerr.Get(folder.Find(open.State.ID()))(t)
			control.Encrypt(keysOf(t, own))
			noerr.Get(control.Read())(t)
		})
	}
}

// TestOverheadOfEncryption: a batch of the maximum size is read.
func TestOverheadOfEncryption(t *testing.T) {
	for _, identity := range []string{
		noerr.Get(age.GenerateX25519Identity())(t).String(), noerr.Get(age.GenerateHybridIdentity())(t).String(),
	} {
		sealed := noerr.Get(keysOf(t, identity).Seal(make([]byte, maxBytes)))(t)
		assert.LessOrEqual(t, len(sealed), MaxFileBytes)
	}
}
