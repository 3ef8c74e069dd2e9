package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// evidence returns the lines of a ledger with six calls, of which the second was erased, and the public key.
func evidence(t *testing.T) (lines []ledger.Line, key string) {
	t.Helper()
	private := ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize)))
	l := noerr.Get(ledger.Open(t.Context(), ledger.Options{Location: filepath.Join(t.TempDir(), "state"), Key: private}))(t)
	for n := range 6 {
		require.NoError(t, l.Append(t.Context(), ledger.Entry{
			Tenant: fmt.Sprint("tenant", n),
			Record: tool.Record{CallID: fmt.Sprintf("%08x-5d1e-7aa0-b3a5-6f0d9c1e2b47", n+1), Result: tool.Result{Success: true, Output: "<é> & 9007199254740993"}},
		}))
	}
	noerr.Get(l.Erase(t.Context(), "tenant1", ""))(t)
	require.NoError(t, l.Close(t.Context()))
	l = noerr.Get(ledger.Open(t.Context(), ledger.Options{Location: l.Location(), Key: private}))(t)
	require.NoError(t, l.Evidence(t.Context(), func(line ledger.Line) error {
		lines = append(lines, line)
		return nil
	}))
	require.NoError(t, l.Close(t.Context()))
	return lines, hex.EncodeToString(private.Public().(ed25519.PublicKey))
}

// verified returns what the verifier finds.
func verified(t *testing.T, lines []ledger.Line, key string) verifier {
	t.Helper()
	var text bytes.Buffer
	for _, line := range lines {
		require.NoError(t, json.NewEncoder(&text).Encode(line))
	}
	v := verifier{key: key}
	require.NoError(t, v.read(&text))
	return v
}

// TestAttackChangedEvidence: whoever changes, removes, swaps or forges a line of the evidence is found out. The control
// is the evidence as it was.
func TestAttackChangedEvidence(t *testing.T) {
	lines, key := evidence(t)
	v := verified(t, lines, key)
	assert.Empty(t, v.faults)
	assert.Equal(t, []int{6, 1, 1}, []int{v.entries, v.removed, v.checkpoints})
	require.Len(t, lines, 9)
	const third, checkpoint, end = 3, 7, 8
	for name, test := range map[string]struct {
		change func(l []ledger.Line) []ledger.Line
		want   string
	}{
		"a byte": {func(l []ledger.Line) []ledger.Line {
			changed := strings.Replace(*l[third].Content, "9007199254740993", "9007199254740992", 1)
			l[third].Content = &changed
			return l
		}, "entry 3 (call 00000003-5d1e-7aa0-b3a5-6f0d9c1e2b47): its content was changed"},
		"a time":            {func(l []ledger.Line) []ledger.Line { l[third].At += "0"; return l }, "call 00000003"},
		"a removed entry":   {func(l []ledger.Line) []ledger.Line { return append(l[:third], l[third+1:]...) }, "(call 00000004-5d1e-7aa0-b3a5-6f0d9c1e2b47): entries 3 to 3"},
		"the last entry":    {func(l []ledger.Line) []ledger.Line { return append(l[:checkpoint-1], l[checkpoint:]...) }, "checkpoint 6: it signs an entry that is not there"},
		"two swapped":       {func(l []ledger.Line) []ledger.Line { l[third], l[third+1] = l[third+1], l[third]; return l }, "call 00000004"},
		"a forged key":      {func(l []ledger.Line) []ledger.Line { l[checkpoint].Key = strings.Repeat("0", 64); return l }, "the signature is wrong"},
		"a forged hash":     {func(l []ledger.Line) []ledger.Line { l[checkpoint].Hash = l[1].Hash; return l }, "the signature is wrong"},
		"an end without it": {func(l []ledger.Line) []ledger.Line { return l[:end] }, "it has no end"},
		"another end":       {func(l []ledger.Line) []ledger.Line { l[end].Seq = "9"; return l }, "the last entry is 6"},
		"another start":     {func(l []ledger.Line) []ledger.Line { l[0].Hash = l[1].Hash; return l }, "call 00000001"},
	} {
		t.Run(name, func(t *testing.T) {
			lines, key := evidence(t)
			assert.Contains(t, strings.Join(verified(t, test.change(lines), key).faults, "\n"), test.want)
		})
	}
	assert.NotEmpty(t, verified(t, lines, strings.Repeat("0", 64)).faults, "signed with another key")
}

func TestLinesThatAreNone(t *testing.T) {
	for _, text := range []string{"{", `{"kind":"chain"}`, `{"kind":"entry","chain":"1","seq":"1"}`, `{"kind":"x","seq":"1"}`} {
		var v verifier
		require.Error(t, v.read(strings.NewReader(text)), text)
	}
}
