package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// spy notes under which name it was called.
type spy struct {
	*fake
	seen *string
}

func (s *spy) Invoke(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	*s.seen = invocation.Tool
	return s.fake.Invoke(ctx, invocation)
}

func TestInvokeRefuses(t *testing.T) {
	gated := conditional{newFake(t, "web_search", nil), "SEARCH_KEY is not set"}
	r := holding(t, newFake(t, "calculator", nil), gated, conditional{newFake(t, "calculators", nil), "later"})

	tests := []struct {
		name    string
		kind    tool.Kind
		message string
	}{
		{"calculater", tool.UnknownTool, `there is no tool "calculater"; did you mean calculator?`},
		{"zzz", tool.UnknownTool, `there is no tool "zzz"`},
		{"", tool.UnknownTool, `there is no tool ""`},
		{"Calculator", tool.UnknownTool, `there is no tool "Calculator"; did you mean calculator?`},
		{"web_search", tool.Denied, "the tool is unavailable: SEARCH_KEY is not set"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			outcome, err := r.Invoke(t.Context(), tool.Invocation{Tool: test.name})
			require.ErrorIs(t, err, test.kind)
			var typed *tool.Error
			require.ErrorAs(t, err, &typed)
			assert.Equal(t, test.message, typed.Message)
			assert.Equal(t, tool.Result{Error: test.message, Kind: test.kind}, outcome.Result)
		})
	}
	assert.Zero(t, gated.calls.Load())

	require.NoError(t, r.Close(t.Context()))
	outcome, err := r.Invoke(t.Context(), tool.Invocation{Tool: "calculator"})
	require.ErrorIs(t, err, registry.ErrClosed)
	assert.Equal(t, tool.Internal, outcome.Result.Kind)
	assert.Equal(t, "the registry is closed", outcome.Result.Error)
}

func TestInvokePassesOn(t *testing.T) {
	f := newFake(t, "flaky", nil)
	cause := &tool.Error{Op: "invoke", Tool: "flaky", Kind: tool.Fuel, Message: "out of fuel"}
	want := tool.Outcome{Result: tool.Result{Error: "out of fuel", Kind: tool.Fuel}, Log: "log"}
	f.run = func(context.Context, tool.Invocation) (tool.Outcome, error) { return want, cause }
	outcome, err := holding(t, f).Invoke(t.Context(), tool.Invocation{Tool: "flaky"})
	assert.Equal(t, want, outcome)
	assert.Same(t, cause, err)
}

func TestUnavailableHoldsItsName(t *testing.T) {
	r := registry.New()
	require.NoError(t, r.Register("a", conditional{newFake(t, "web_search", nil), "no key"}))
	require.ErrorIs(t, r.Register("b", newFake(t, "web_search", nil)), registry.ErrDuplicate)
	entry, ok := r.Get("web_search")
	require.True(t, ok)
	assert.Equal(t, "a", entry.Source)
	assert.Equal(t, "no key", entry.Unavailable())
	assert.Equal(t, "no key", r.List()[0].Unavailable())
	assert.Empty(t, r.Definitions())
}

// TestHiddenToolsAreOffered: they are hidden from people, not from the model. The definitions are the same each time.
func TestHiddenToolsAreOffered(t *testing.T) {
	r := holding(t, newFake(t, "zeta", nil), newFake(t, "alpha", aliases("a1", "a2")), newFake(t, "mid", hidden), conditional{newFake(t, "beta", nil), "later"})

	var listed []string
	for _, entry := range r.List() {
		listed = append(listed, entry.Name)
	}
	assert.Equal(t, []string{"alpha", "beta", "mid", "zeta"}, listed)
	assert.Equal(t, []string{"a1", "a2"}, r.List()[0].Aliases)

	definitions := r.Definitions()
	text, err := json.Marshal(definitions)
	require.NoError(t, err)
	assert.JSONEq(t, `[
		{"name":"alpha","description":"Does alpha.","parameters":{"type":"object","properties":{"n":{"type":"integer"}}}},
		{"name":"mid","description":"Does mid.","parameters":{"type":"object","properties":{"n":{"type":"integer"}}}},
		{"name":"zeta","description":"Does zeta.","parameters":{"type":"object","properties":{"n":{"type":"integer"}}}}]`, string(text))
	definitions[0].Parameters[0] = 'X'
	for range 20 {
		again, err := json.Marshal(r.Without().Definitions())
		require.NoError(t, err)
		assert.Equal(t, string(text), string(again))
	}

	empty, err := json.Marshal(registry.New().Definitions())
	require.NoError(t, err)
	assert.Equal(t, "[]", string(empty))
}

func TestNearest(t *testing.T) {
	r := holding(t, newFake(t, "fetch_page", aliases("web_fetch")), conditional{newFake(t, "file_reab", nil), "no"})
	for _, name := range []string{"file_read", "file_write", "file_list", "calculator", "x"} {
		require.NoError(t, r.Register("", newFake(t, name, nil)))
	}
	tests := []struct {
		name string
		n    int
		want []string
	}{
		{"file_raed", 1, []string{"file_read"}},
		{"file_red", 3, []string{"file_read"}},
		{"fil_ist", 3, []string{"file_list"}},
		{"file_rite", 3, []string{"file_write", "file_list", "file_read"}},
		{"File-Read", 1, []string{"file_read"}},
		{"webfetch", 3, []string{"fetch_page"}},
		{"quite_something_else", 3, []string{}},
		{"q", 3, []string{}},
		{"file_read", 0, nil},
		{"file_read", -1, nil},
		{"", 3, nil},
		{string(make([]byte, 1<<20)), 3, nil},
	}
	for _, test := range tests {
		t.Run(test.name[:min(30, len(test.name))], func(t *testing.T) {
			assert.Equal(t, test.want, r.Nearest(test.name, test.n))
		})
	}
}

func TestErrorsRead(t *testing.T) {
	err := &registry.Error{Op: "close", Err: errors.New("boom")}
	assert.Equal(t, "registry: close: boom", err.Error())
	err.Name = "x"
	assert.Equal(t, "registry: close x: boom", err.Error())
	assert.Equal(t, `"x" of src`, registry.Origin{Name: "x", Source: "src"}.String())
	assert.Equal(t, `"x"`, registry.Origin{Name: "x"}.String())
}
