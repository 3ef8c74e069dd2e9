package permission_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/permission"
)

// set is what all values of this package have in common, for one kind of element.
type set[S any, E any] interface {
	comparable
	Matches(E) bool
	Covers(S) bool
	Intersect(S) (S, bool)
	String() string
}

// requireSets checks that three values behave as sets do, on the elements that are given.
func requireSets[S set[S, E], E any](t *testing.T, a, b, c S, elements []E) {
	t.Helper()
	require.True(t, a.Covers(a))
	both, overlap := a.Intersect(b)
	swapped, _ := b.Intersect(a)
	require.Equal(t, both, swapped)
	if overlap {
		require.True(t, a.Covers(both) && b.Covers(both), "%s of %s and %s", both, a, b)
	} else {
		require.Zero(t, both)
	}
	require.Equal(t, a.Covers(b), overlap && both == b)
	if a.Covers(c) && b.Covers(c) {
		require.True(t, overlap && both.Covers(c), "%s lies in %s and %s, and not in %s", c, a, b, both)
	}
	if a.Covers(b) && b.Covers(c) {
		require.True(t, a.Covers(c))
	}
	if a.Covers(b) && b.Covers(a) {
		require.Equal(t, a, b)
	}
	for _, e := range elements {
		require.Equal(t, a.Matches(e) && b.Matches(e), overlap && both.Matches(e), "%v in %s and %s", e, a, b)
		if a.Covers(b) && b.Matches(e) {
			require.True(t, a.Matches(e), "%v in %s, which %s covers", e, b, a)
		}
	}
}

// all parses three texts, or reports false.
func all[S set[S, E], E any](t *testing.T, parse func(string) (S, error), texts ...string) ([]S, bool) {
	var values []S
	for _, text := range texts {
		value, err := parse(text)
		if err != nil {
			require.ErrorIs(t, err, permission.ErrInvalid)
			require.Zero(t, value)
			return nil, false
		}
		again, err := parse(value.String())
		require.NoError(t, err)
		require.Equal(t, value, again)
		values = append(values, value)
	}
	return values, true
}

func FuzzHost(f *testing.F) {
	for _, seed := range [][3]string{
		{"*", "*.a.example", "b.a.example"}, {"A.example", "a.example", "*.example"}, {"::ffff:127.0.0.1", "127.0.0.1", "127.1"}, {"fe80::1%eth0", "[::1]", "::1"},
		{"\u212a.a", "0X7F.1", "*.0x"}, {"a.", "", "*."}, {"*.*", "a*", "a\x00"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, x, y, z string) {
		hosts, ok := all[permission.Host, permission.Host](t, permission.ParseHost, x, y, z)
		if !ok {
			return
		}
		samples := hosts
		for _, text := range []string{"example.com", "a.example.com", "127.0.0.1", "::1"} {
			samples = append(samples, host(t, text))
		}
		requireSets(t, hosts[0], hosts[1], hosts[2], samples)
		for _, h := range hosts {
			one, err := permission.ParseOneHost(h.String())
			require.Equal(t, h.IsOne(), err == nil)
			if err == nil {
				require.Equal(t, h, one)
				require.True(t, h.Matches(h))
				dotted, err := permission.ParseURLHost(h.String() + ".")
				if !h.Address().Is6() {
					require.NoError(t, err)
					require.Equal(t, h, dotted)
				}
			}
		}
	})
}

func FuzzURLPath(f *testing.F) {
	for _, seed := range [][3]string{{"/", "/a", "/a/b"}, {"/a/", "/a", "/ab"}, {"/..;x", "/a b", "/%2f"}, {"/ü", "/\u202e", "/a;b"}} {
		f.Add(seed[0], seed[1], seed[2], "/a/b/../c", "/a/b/%2e%2e/c")
	}
	f.Fuzz(func(t *testing.T, x, y, z, decoded, escaped string) {
		requested := permission.ReadRequestPath(decoded, escaped)
		paths, ok := all[permission.URLPath, permission.RequestPath](t, permission.ParseURLPath, x, y, z)
		if !ok {
			return
		}
		samples := []permission.RequestPath{requested}
		for _, p := range paths {
			own := permission.ReadRequestPath(p.String(), p.String())
			require.False(t, own.IsAmbiguous(), "%s is never matched", p)
			require.True(t, p.Matches(own) && p.MatchesLoosely(own))
			if p.Matches(requested) && !p.IsEvery() {
				require.True(t, p.MatchesLoosely(requested), "what may be granted must be deniable")
			}
			samples = append(samples, own, permission.ReadRequestPath(p.String()+"/x", p.String()+"/x"))
		}
		requireSets(t, paths[0], paths[1], paths[2], samples)
	})
}

func FuzzGuestPath(f *testing.F) {
	for _, seed := range [][3]string{{"/", "/a", "/a/b"}, {"/ab", "/a", "/a/../b"}, {"a", "", "/a\x00"}, {"/\u202e", `/a\b`, "/a/"}} {
		f.Add(seed[0], seed[1], seed[2], "/a/x")
	}
	f.Fuzz(func(t *testing.T, x, y, z, guest string) {
		paths, ok := all[permission.GuestPath, string](t, permission.ParseGuestPath, x, y, z)
		if !ok {
			return
		}
		samples := []string{guest, x, y, z, x + "/x", y + "x"}
		requireSets(t, paths[0], paths[1], paths[2], samples)
	})
}

// FuzzHostTemplate: no template and no value leads to a path outside the literal part, and
// templates behave as the sets of the directories that they name.
func FuzzHostTemplate(f *testing.F) {
	for _, seed := range [][2]string{
		{"ws/{id}", "ws/{a}"}, {"ws/{id}/x", "ws/b/{c}"}, {"{id}", ".."}, {"/{a}/{a}", "/{b}/c"}, {"a/../{b}", "a/../b"}, {"{a}/..", "."}, {"/", "//"}, {"{a}/{b}/{a}", "{b}/{b}/{c}"},
	} {
		for _, value := range []string{"p1", "..", "a/b", "\x00", "."} {
			f.Add(seed[0], seed[1], value, "b")
		}
	}
	f.Fuzz(func(t *testing.T, x, y, value, other string) {
		a, err := permission.ParseHostTemplate(x)
		if err != nil {
			require.ErrorIs(t, err, permission.ErrInvalid)
			return
		}
		again, err := permission.ParseHostTemplate(a.String())
		require.NoError(t, err)
		require.Equal(t, a, again)
		require.True(t, a.Covers(a))
		values := map[string]string{}
		for i, key := range a.Keys() {
			values[key] = []string{value, other}[i%2]
		}
		elements, err := a.Elements(values)
		for _, name := range elements {
			require.NotContains(t, []string{"", ".", ".."}, name)
			require.NotContains(t, name, "/")
		}
		b, wrong := permission.ParseHostTemplate(y)
		if err != nil || wrong != nil {
			return
		}
		both, overlap := a.Intersect(b)
		_, swapped := b.Intersect(a)
		require.Equal(t, overlap, swapped)
		if overlap {
			require.True(t, a.Covers(both) && b.Covers(both), "%q of %q and %q", both, a, b)
			parsed, err := permission.ParseHostTemplate(both.String())
			require.NoError(t, err)
			require.Equal(t, both, parsed)
		}
		if a.Covers(b) {
			require.True(t, overlap && both.Covers(b))
		}
		dir := a.Base()
		for _, name := range elements {
			dir += "/" + name
		}
		if literal, err := permission.ParseHostTemplate(dir); err == nil && len(literal.Keys()) == 0 {
			require.True(t, a.Matches(dir), "%q is %q with %q", dir, a, values)
			require.Equal(t, b.Matches(dir), overlap && both.Matches(dir), "%q in %q and %q", dir, a, b)
		}
	})
}
