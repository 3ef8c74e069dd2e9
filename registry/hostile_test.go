package registry_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// TestInvokeChecksRegistration: a call that names a registration never runs another tool with the same name.
func TestInvokeChecksRegistration(t *testing.T) {
	old, replaced := newFake(t, "it", aliases("that")), newFake(t, "it", aliases("that"))
	first := holding(t, old)
	second, err := first.Without("it").With(replaced)
	require.NoError(t, err)
	checked, ok := first.Get("it")
	require.True(t, ok)
	again, ok := second.Get("it")
	require.True(t, ok)
	require.NotZero(t, checked.Registration)
	require.NotEqual(t, checked.Registration, again.Registration)

	for _, name := range []string{"it", "that"} {
		for _, r := range []*registry.Registry{first, first.Without()} {
			outcome, err := r.Invoke(t.Context(), tool.Invocation{Tool: name, Registration: checked.Registration})
			require.NoError(t, err)
			assert.True(t, outcome.Result.Success)
		}
		outcome, err := second.Invoke(t.Context(), tool.Invocation{Tool: name, Registration: checked.Registration})
		require.ErrorIs(t, err, tool.Busy)
		message := "the tool was replaced after the call was checked; call it again"
		assert.Equal(t, tool.Result{Error: message, Kind: tool.Busy}, outcome.Result)
		assert.Zero(t, replaced.calls.Load())
	}
	for i, registration := range []tool.Registration{again.Registration, {}} {
		_, err := second.Invoke(t.Context(), tool.Invocation{Tool: "it", Registration: registration})
		require.NoError(t, err)
		assert.EqualValues(t, i+1, replaced.calls.Load())
	}
	_, err = second.Without("it").Invoke(t.Context(), tool.Invocation{Tool: "it", Registration: checked.Registration})
	require.ErrorIs(t, err, tool.UnknownTool)
}

// unsure is a fake whose Unavailable panics.
type unsure struct{ *fake }

func (unsure) Unavailable() string { panic("unavailable") }

// TestUnavailableThatPanics: the tool is unavailable, and listing the tools still works.
func TestUnavailableThatPanics(t *testing.T) {
	bad := unsure{newFake(t, "bad", nil)}
	r := holding(t, bad, newFake(t, "good", nil))
	entry, ok := r.Get("bad")
	require.True(t, ok)
	assert.NotEmpty(t, entry.Unavailable())
	require.Len(t, r.List(), 2)
	assert.NotEmpty(t, r.List()[0].Unavailable())
	require.Len(t, r.Definitions(), 1)
	assert.Equal(t, "good", r.Definitions()[0].Name)
	assert.Empty(t, r.Nearest("bat", 3))
	_, err := r.Invoke(t.Context(), tool.Invocation{Tool: "bad"})
	require.ErrorIs(t, err, tool.Denied)
	assert.Zero(t, bad.calls.Load())
}
