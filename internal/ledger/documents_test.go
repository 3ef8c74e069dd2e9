package ledger_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/folder"
	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/noerr"
)

// documents opens the documents of a location until the end of the test, as another process does.
func documents(t *testing.T, kind ledger.Kind, location string) *ledger.Documents {
	t.Helper()
	state, url := location, ""
	if strings.Contains(location, "://") {
		state, url = "", location
	}
	d := noerr.Get(ledger.OpenDocuments(t.Context(), kind, state, url))(t)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d
}

// to returns a change to a content, whatever the document was.
func to(content string) func([]byte) ([]byte, error) {
	return func([]byte) ([]byte, error) { return []byte(content), nil }
}

func remove([]byte) ([]byte, error) { return nil, nil }

func TestDocuments(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		agents, same := documents(t, ledger.AgentKind, location), documents(t, ledger.AgentKind, location)
		require.ErrorIs(t, noerr.Error(agents.Read(t.Context(), "acme", "a")), ledger.ErrNotFound)
		assert.Empty(t, noerr.Get(agents.Names(t.Context(), "acme"))(t))
		require.NoError(t, agents.Change(t.Context(), "acme", "a", remove), "there is none")
		tenants := []string{"acme", "ACME", "", "..", "acme\x00", "\xff", strings.Repeat("x", 5000)}
		for _, tenant := range tenants {
			require.NoError(t, agents.Change(t.Context(), tenant, "a", to("of "+tenant)))
		}
		require.NoError(t, agents.Change(t.Context(), "acme", "b", to("1")))
		require.NoError(t, same.Change(t.Context(), "acme", "b", func(old []byte) ([]byte, error) { return append(old, '2'), nil }))
		require.NoError(t, same.Change(t.Context(), "acme", "empty", to("")))
		require.NoError(t, same.Change(t.Context(), "acme", "empty", func(old []byte) ([]byte, error) {
			assert.NotNil(t, old)
			return nil, nil
		}))
		failure := errors.New("failed")
		require.ErrorIs(t, same.Change(t.Context(), "acme", "b", func([]byte) ([]byte, error) { return nil, failure }), failure)
		for _, d := range []*ledger.Documents{agents, same} {
			for _, tenant := range tenants {
				assert.Equal(t, "of "+tenant, string(noerr.Get(d.Read(t.Context(), tenant, "a"))(t)))
			}
			names := noerr.Get(d.Names(t.Context(), "acme"))(t)
			slices.Sort(names)
			assert.Equal(t, []string{"a", "b"}, names)
			assert.Equal(t, map[string][]byte{"a": []byte("of acme"), "b": []byte("12")}, noerr.Get(d.All(t.Context(), "acme"))(t))
			assert.Equal(t, []string{"a"}, noerr.Get(d.Names(t.Context(), "ACME"))(t))
		}
		assert.Empty(t, noerr.Get(documents(t, ledger.TokenKind, location).Names(t.Context(), ""))(t), "of another kind")

		options := ledger.Options{Location: location}
		if !strings.Contains(location, "://") {
			options.Location = ledger.In(location)
		}
		l := opened(t, options)
		appended(t, l, entry(1, func(e *ledger.Entry) { e.Tenant = "acme" }))
		assert.Equal(t, int64(1), noerr.Get(l.Erase(t.Context(), "acme", ""))(t))
		assert.Len(t, noerr.Get(same.Names(t.Context(), "acme"))(t), 2, "only records are erased")
		require.NoError(t, same.Change(t.Context(), "acme", "a", remove))
		require.ErrorIs(t, noerr.Error(agents.Read(t.Context(), "acme", "a")), ledger.ErrNotFound)

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, agents.Change(ended, "acme", "c", to("")), context.Canceled)
		require.NoError(t, agents.Close())
		require.Error(t, agents.Change(t.Context(), "acme", "c", to("")))
	})
}

// TestDocumentsAtOnce: of processes that create a document at the same time one does, and no change is lost.
func TestDocumentsAtOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		const processes, rounds = 4, 20
		var made atomic.Int64
		var all sync.WaitGroup
		for range processes {
			d := documents(t, ledger.TokenKind, location)
			all.Go(func() {
				for i := range rounds {
					taken := errors.New("taken")
					err := d.Change(t.Context(), "", strconv.Itoa(i), func(old []byte) ([]byte, error) {
						if old != nil {
							return nil, taken
						}
						return []byte("made"), nil
					})
					if err == nil {
						made.Add(1)
					} else {
						assert.ErrorIs(t, err, taken)
					}
					assert.NoError(t, d.Change(t.Context(), "", "count", func(old []byte) ([]byte, error) {
						n, _ := strconv.Atoi(string(old))
						return []byte(strconv.Itoa(n + 1)), nil
					}))
				}
			})
		}
		all.Wait()
		assert.Equal(t, int64(rounds), made.Load())
		count := noerr.Get(documents(t, ledger.TokenKind, location).Read(t.Context(), "", "count"))(t)
		assert.Equal(t, strconv.Itoa(processes*rounds), string(count))
	})
}

// oldFolders writes what an earlier version has stored in a state folder.
func oldFolders(t *testing.T, state string) {
	t.Helper()
	for path, content := range map[string]string{
		"tokens/token.aaaaaaaaaaaaa.json": `{"id":"aaaaaaaaaaaaa"}`, "tokens/token.bbbbbbbbbbbbb.json": `{"id":"bbbb`, "tokens/.draft.tmp": "x",
		"agents/" + digest("acme") + "/agent.clerk.json": `{"tenant":"acme","name":"clerk"}`, "agents/" + digest("") + "/agent.clerk.json": `{"tenant":"","name":"clerk"}`,
		"agents/" + digest("evil") + "/agent.admin.json": `{"tenant":"acme","name":"admin"}`, "agents/" + digest("evil") + "/agent.half.json": `{"tena`,
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(state, path)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(state, path), []byte(content), 0o600))
	}
	require.NoError(t, os.Symlink("/etc/hostname", filepath.Join(state, "tokens", "token.ccccccccccccc.json")))
}

func digest(tenant string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte("caisson-tenant/v1 "+tenant)))
}

// TestAttackOldFolders: tokens and agents of an earlier version are there, and are imported once. A file that was moved
// to another tenant's folder, or leads elsewhere, gives nobody anything; it is named once. A token that was revoked
// stays so if its file comes back.
func TestAttackOldFolders(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		state, url := location, ""
		if strings.Contains(location, "://") {
			state, url = filepath.Join(t.TempDir(), "state"), location
		}
		oldFolders(t, state)
		_, err := ledger.OpenDocuments(t.Context(), ledger.AgentKind, state, url)
		for _, left := range []string{"agents-imported", "agent.admin.json: it is another agent's", "agent.half.json"} {
			require.ErrorContains(t, err, left)
		}
		agents := documents(t, ledger.AgentKind, location)
		assert.JSONEq(t, `{"tenant":"acme","name":"clerk"}`, string(noerr.Get(agents.Read(t.Context(), "acme", "clerk"))(t)))
		for tenant, count := range map[string]int{"acme": 1, "": 1, "evil": 0} {
			assert.Len(t, noerr.Get(agents.Names(t.Context(), tenant))(t), count, tenant)
		}
		_, err = ledger.OpenDocuments(t.Context(), ledger.TokenKind, state, url)
		require.ErrorContains(t, err, "token.ccccccccccccc.json")
		tokens := documents(t, ledger.TokenKind, location)
		assert.Equal(t, map[string][]byte{"aaaaaaaaaaaaa": []byte(`{"id":"aaaaaaaaaaaaa"}`), "bbbbbbbbbbbbb": []byte(`{"id":"bbbb`), "ccccccccccccc": []byte("{}")},
			noerr.Get(tokens.All(t.Context(), ""))(t), "whatever was in a file, there is a token")

		require.NoError(t, tokens.Change(t.Context(), "", "aaaaaaaaaaaaa", to("revoked")))
		require.NoError(t, os.Rename(filepath.Join(state, "tokens-imported"), filepath.Join(state, "tokens")))
		_, err = ledger.OpenDocuments(t.Context(), ledger.TokenKind, state, url)
		require.ErrorContains(t, err, "token.ccccccccccccc.json")
		assert.Equal(t, "revoked", string(noerr.Get(tokens.Read(t.Context(), "", "aaaaaaaaaaaaa"))(t)))
	})
}

// TestAttackExposedFolders: neither a ledger nor a folder of an earlier version that others can write is used.
func TestAttackExposedFolders(t *testing.T) {
	for _, exposed := range []string{"ledger", "tokens"} {
		state := filepath.Join(t.TempDir(), "state")
		d := documents(t, ledger.TokenKind, state)
		require.NoError(t, d.Change(t.Context(), "", "a", to("{}"))) // the control
		require.NoError(t, os.MkdirAll(filepath.Join(state, exposed), 0o700))
		require.NoError(t, os.Chmod(filepath.Join(state, exposed), 0o777)) //nolint:gosec // that is the fault
		require.ErrorIs(t, noerr.Error(ledger.OpenDocuments(t.Context(), ledger.TokenKind, state, "")), folder.ErrExposed, exposed)
	}
}

// TestAttackFullDisk: callers may fill the disk. There is space for a change that must not fail then, until it is used,
// and again when the documents are opened later.
func TestAttackFullDisk(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	d := documents(t, ledger.TokenKind, state)
	assert.False(t, d.MakeRoom(), "there is no ledger yet")
	for range 2 {
		require.NoError(t, documents(t, ledger.TokenKind, state).Change(t.Context(), "", "a", to("{}")))
		spare := noerr.Get(os.ReadFile(filepath.Join(ledger.In(state), "ledger.spare")))(t)
		assert.Greater(t, len(slices.Compact(spare)), 250<<10, "it takes as much space on every file system")
		assert.True(t, d.MakeRoom())
		assert.False(t, d.MakeRoom())
	}
	for name, location := range stores {
		if name != "sqlite" {
			assert.False(t, documents(t, ledger.TokenKind, location(t)).MakeRoom())
		}
	}
}

// TestSomeDocuments: those are found that were asked for, whatever their names are like.
func TestSomeDocuments(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		d := documents(t, ledger.TokenKind, location)
		if !strings.Contains(location, "://") {
			require.ErrorIs(t, noerr.Error(d.Some(t.Context(), "", []string{"a"})), ledger.ErrNotFound)
		}
		for _, name := range []string{"a", "b", `'"]`, "é"} {
			require.NoError(t, d.Change(t.Context(), "", name, to("of "+name)))
		}
		require.NoError(t, d.Change(t.Context(), "other", "c", to("another tenant's")))
		found := noerr.Get(d.Some(t.Context(), "", []string{"a", `'"]`, "é", "c", "", "a"}))(t)
		assert.Equal(t, map[string][]byte{"a": []byte("of a"), `'"]`: []byte(`of '"]`), "é": []byte("of é")}, found)
		assert.Empty(t, noerr.Get(d.Some(t.Context(), "", nil))(t))
	})
}
