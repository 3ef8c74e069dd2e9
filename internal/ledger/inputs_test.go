package ledger

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/tool"
)

// TestInputsAreFoundByIDAlone: a page of calls has no recorded inputs, which may be megabytes. They are erased with the
// record.
func TestInputsAreFoundByIDAlone(t *testing.T) {
	const id = "0199f3c2-5d1e-7aa0-b3a5-000000000001"
	l, err := OpenIn(t.Context(), t.TempDir(), Options{})
	require.NoError(t, err)
	inputs := json.RawMessage(`{"version":1}`)
	require.NoError(t, l.Append(t.Context(), Entry{Tenant: "acme", Record: tool.Record{CallID: id}, Inputs: inputs}))
	found, err := l.Find(t.Context(), id)
	require.NoError(t, err)
	assert.JSONEq(t, string(inputs), string(found.Inputs))
	page, err := l.Calls(t.Context(), Filter{})
	require.NoError(t, err)
	require.Len(t, page.Entries, 1)
	assert.Nil(t, page.Entries[0].Inputs)
	_, err = l.Erase(t.Context(), "acme", "")
	require.NoError(t, err)
	_, err = l.Find(t.Context(), id)
	assert.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, l.Close(t.Context()))
}
