package calls_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/calls"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

func grants(names ...string) []manifests.NameGrant {
	var all []manifests.NameGrant
	for _, name := range names {
		all = append(all, manifests.NameGrant{Binding: manifests.Binding{Origin: "caisson.yaml:3"}, Name: name})
	}
	return all
}

// options are what a manifest requests and the operator says.
type options struct {
	requests []string
	manifests.Grants
}

func permission(t testing.TB, o options) *calls.Permission {
	t.Helper()
	p, err := calls.New("research", o.requests, o.Grants, "")
	require.NoError(t, err)
	return p
}

func TestDecisions(t *testing.T) {
	p := permission(t, options{[]string{"search", "read", "write", "clock", "research"}, manifests.Grants{
		Calls: append(grants("search", "write", "unasked", "search"), manifests.NameGrant{Name: "research"}),
		Deny:  []manifests.Deny{{Origin: "caisson.yaml:9", Call: "write"}, {Call: "clock"}, {Origin: "caisson.yaml:10", Call: "write"}},
	}})
	assert.Equal(t, []tool.Decision{
		{Permission: "tools", Requested: "search", Granted: "search (caisson.yaml:3)", Effective: "search", Reason: "granted"},
		{Permission: "tools", Requested: "read", Reason: "no grant lets it be called",
			Allow: tool.Allow{Grant: json.RawMessage(`{"tools":["research"],"calls":["read"]}`)}},
		{Permission: "tools", Requested: "write", Granted: "write (caisson.yaml:3)", Reason: "denied by caisson.yaml:9"},
		{Permission: "tools", Requested: "clock", Reason: "denied by the operator"},
		{Permission: "tools", Requested: "research", Granted: "research", Effective: "research", Reason: "granted"},
	}, p.Decisions())
	assert.Empty(t, permission(t, options{}).Decisions())
}

func TestReceiptsAreTheCallersToKeep(t *testing.T) {
	p := permission(t, options{})
	p.Check("a").Rule = "changed"
	assert.NotEqual(t, "changed", p.Check("a").Rule)
}

func TestGrantsThatMakeNoSense(t *testing.T) {
	for _, name := range []string{"", "*", "file_*", "a b", "é", strings.Repeat("a", 65)} {
		_, err := calls.New("research", nil, manifests.Grants{Calls: grants("fine", name)}, "")
		require.ErrorIs(t, err, hostfuncs.ErrInvalid, name)
		assert.ErrorContains(t, err, "caisson.yaml:3")
	}
}

// FuzzCheck: a name is allowed if it is asked for, granted and not denied, letter by letter; a receipt shows only safe
// text, and its suggested rules, pasted, allow just that name.
func FuzzCheck(f *testing.F) {
	for _, name := range []string{"search", "Search", "search ", "write", "denied", "new", "*", "", "a]}, {tools: [b", "a\x1b[0m", "\xff", "sear\u200bch", strings.Repeat("a", 65)} {
		f.Add(name, true)
		f.Add(name, false)
	}
	f.Fuzz(func(t *testing.T, name string, asked bool) {
		given := options{[]string{"search", "denied"}, manifests.Grants{
			Calls: grants("search", "write", "denied"), Deny: []manifests.Deny{{Call: "denied"}},
		}}
		if (manifests.Permissions{Tools: []string{name}}).Rule() != nil && asked && !slices.Contains(given.requests, name) {
			given.requests = append(given.requests, name)
		}
		receipt := permission(t, given).Check(name)
		allowed := slices.Contains(given.requests, name) && (name == "search" || name == "write")
		require.Equal(t, allowed, receipt == nil)
		if allowed {
			return
		}
		require.True(t, utf8.ValidString(receipt.Value))
		require.False(t, strings.ContainsFunc(receipt.Value, func(r rune) bool { return !unicode.IsPrint(r) && r != utf8.RuneError }))
		require.LessOrEqual(t, len(receipt.Value), 3*128+3)
		if receipt.Allow.Manifest == nil && receipt.Allow.Grant == nil {
			return
		}
		pasted := permission(t, paste(t, given, receipt.Allow))
		require.Nil(t, pasted.Check(name))
		for _, other := range []string{"other", name + "x", strings.ToUpper(name) + "_"} {
			require.NotNil(t, pasted.Check(other))
		}
	})
}

// paste returns the options with what a receipt says is missing.
func paste(t *testing.T, o options, allow tool.Allow) options {
	t.Helper()
	if allow.Manifest != nil {
		m, err := manifests.Parse("tool.json", []byte(`{"schema":"caisson/v1","name":"research","description":"a","module":{"path":"a.wasm"},"permissions":`+string(allow.Manifest)+`}`))
		require.NoError(t, err)
		o.requests = append(slices.Clone(o.requests), m.Permissions.Tools...)
	}
	if allow.Grant != nil {
		p, err := manifests.ParsePolicy("caisson.json", []byte(`{"schema":"caisson-config/v1","grants":[`+string(allow.Grant)+`]}`))
		require.NoError(t, err)
		o.Calls = append(slices.Clone(o.Calls), p.For("research", "").Calls...)
	}
	return o
}
