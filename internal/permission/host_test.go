package permission_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/permission"
)

func host(t *testing.T, text string) permission.Host {
	t.Helper()
	h, err := permission.ParseHost(text)
	require.NoError(t, err, text)
	return h
}

func TestParseHost(t *testing.T) {
	for text, want := range map[string]string{
		"example.com": "example.com", "API.Example.COM": "api.example.com", "localhost": "localhost", "a_b.example": "a_b.example", "xn--bcher-kva.example": "xn--bcher-kva.example",
		"*": "*", "*.COM": "*.com", "*.a.example": "*.a.example",
		"10.0.0.1": "10.0.0.1", "::1": "::1", "2001:DB8:0:0::1": "2001:db8::1", "::ffff:127.0.0.1": "127.0.0.1", "::FFFF:7f00:1": "127.0.0.1", "0xg.example": "0xg.example",
		strings.Repeat("a", 63) + ".example": strings.Repeat("a", 63) + ".example",
	} {
		assert.Equal(t, want, host(t, text).String(), text)
		assert.Equal(t, host(t, want), host(t, text), text)
	}
	for text, problem := range map[string]string{
		"": "is empty", "*.": "is empty", "https://example.com": "is not a host alone", "user@example.com": "is not a host alone", "a/x": "is not a host alone", "a b": "is not a host alone",
		"example.com:443": "has a port or brackets", "[::1]": "has a port or brackets", "fe80::1%eth0": "has a zone", "::ffff:1.2.3.4%eth0": "has a zone",
		"*.10.0.0.1": "is an address, which has no names below it", "*.::1": "is an address, which has no names below it",
		"*.*": "stands for many hosts", "*.*.example.com": "stands for many hosts", "a*": "has a * that is not the whole first label", "**.a": "has a * that is not the whole first label", "a.*.com": "has a * that is not the whole first label",
		"127.1": "is an address in an unusual form", "0x7f000001": "is an address in an unusual form", "0X7F.1": "is an address in an unusual form", "0177.0.0.01": "is an address in an unusual form",
		"1.2.3.4.5": "is an address in an unusual form", "a.0x": "is an address in an unusual form", "*.0.0.1": "is an address in an unusual form",
		strings.Repeat("a.", 127) + "example": "is longer than 253 characters",
		"example.com.":                        "is not a host name (non-ASCII names are written in their xn-- form)",
		".":                                   "is not a host name (non-ASCII names are written in their xn-- form)",
		"bücher.example":                      "is not a host name (non-ASCII names are written in their xn-- form)",
		"e\u212aample.com":                    "is not a host name (non-ASCII names are written in their xn-- form)", // the Kelvin sign is a k in lower case
		"a\x00b":                              "is not a host name (non-ASCII names are written in their xn-- form)",
		"a\xff":                               "is not a host name (non-ASCII names are written in their xn-- form)",
		"-a.example":                          "is not a host name (non-ASCII names are written in their xn-- form)",
		"a-.example":                          "is not a host name (non-ASCII names are written in their xn-- form)",
		strings.Repeat("a", 64) + ".example":  "is not a host name (non-ASCII names are written in their xn-- form)",
	} {
		h, err := permission.ParseHost(text)
		require.ErrorIs(t, err, permission.ErrInvalid, text)
		assert.Zero(t, h)
		wrong, _ := errors.AsType[*permission.Error](err)
		assert.Equal(t, problem, wrong.Problem, text)
		assert.Equal(t, text, wrong.Text)
	}
}

func TestParseOneHost(t *testing.T) {
	for text, problem := range map[string]string{"*": "stands for many hosts", "*.a": "stands for many hosts", "a.": "is not a host name (non-ASCII names are written in their xn-- form)"} {
		_, err := permission.ParseOneHost(text)
		wrong, ok := errors.AsType[*permission.Error](err)
		require.True(t, ok, text)
		assert.Equal(t, problem, wrong.Problem)
	}
	one, err := permission.ParseOneHost("A.example")
	require.NoError(t, err)
	assert.Equal(t, "a.example", one.String())
	assert.True(t, one.IsOne())
}

// TestParseURLHost: a URL may name the root of all names, and a permission has no need to.
func TestParseURLHost(t *testing.T) {
	for _, text := range []string{"example.com", "EXAMPLE.com."} {
		h, err := permission.ParseURLHost(text)
		require.NoError(t, err, text)
		assert.Equal(t, host(t, "example.com"), h)
	}
	h, err := permission.ParseURLHost("127.0.0.1.")
	require.NoError(t, err)
	assert.Equal(t, host(t, "127.0.0.1"), h, "a denial of the address holds for it")
	for _, text := range []string{"", ".", "a..", "*.example.com", "*", "[::1]"} {
		_, err := permission.ParseURLHost(text)
		require.ErrorIs(t, err, permission.ErrInvalid, text)
	}
}

func TestHostForms(t *testing.T) {
	assert.Equal(t, "[::1]", host(t, "::1").Bracketed())
	assert.Equal(t, "127.0.0.1", host(t, "::ffff:127.0.0.1").Bracketed())
	assert.Equal(t, "*.example.com", host(t, "*.example.com").Bracketed())
	assert.True(t, host(t, "::1").Address().IsLoopback())
	assert.False(t, host(t, "example.com").Address().IsValid())
	assert.False(t, host(t, "*").IsOne())
	assert.False(t, host(t, "*.a").IsOne())
	assert.False(t, permission.Host{}.IsOne())
}

// hostLattice lists which hosts each host covers besides itself.
var hostLattice = map[string][]string{
	"*":               {"*.com", "*.example.com", "*.a.example.com", "example.com", "a.example.com", "b.a.example.com", "evilexample.com", "127.0.0.1", "::1"},
	"*.com":           {"*.example.com", "*.a.example.com", "example.com", "a.example.com", "b.a.example.com", "evilexample.com"},
	"*.example.com":   {"*.a.example.com", "a.example.com", "b.a.example.com"},
	"*.a.example.com": {"b.a.example.com"},
	"example.com":     nil, "a.example.com": nil, "b.a.example.com": nil, "evilexample.com": nil, "127.0.0.1": nil, "::1": nil,
}

func TestHostLattice(t *testing.T) {
	for outer, covered := range hostLattice {
		for inner := range hostLattice {
			a, b := host(t, outer), host(t, inner)
			want := outer == inner || slices.Contains(covered, inner)
			assert.Equal(t, want, a.Covers(b), "%s covers %s", outer, inner)
			assert.Equal(t, want && b.IsOne(), a.Matches(b), "%s matches %s", outer, inner)
		}
		none := permission.Host{}
		assert.False(t, none.Covers(host(t, outer)) || host(t, outer).Covers(none) || none.Covers(none))
	}
}

func TestParseEndpoint(t *testing.T) {
	for text, want := range map[string]string{"127.0.0.1:8443": "127.0.0.1:8443", "[::1]:80": "[::1]:80", "[::ffff:127.0.0.1]:80": "127.0.0.1:80"} {
		endpoint, err := permission.ParseEndpoint(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, endpoint.String())
	}
	for _, text := range []string{"", "127.0.0.1", "127.0.0.1:0", "localhost:80", "[fe80::1%eth0]:80", "::1:80", "127.1:80", "127.0.0.1:65536"} {
		_, err := permission.ParseEndpoint(text)
		require.ErrorIs(t, err, permission.ErrInvalid, text)
	}
}
