package spelling_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/internal/spelling"
)

func TestLookAlike(t *testing.T) {
	for _, names := range [][]string{
		{"file_read", "fiIe_read", "fi1e_read", "FILE_READ", "File-Read", "file__read", "_file_read-"},
		{"tool", "too1", "tooI", "t001", "tOOL", "TOOI"},
		{"web_form", "web_forrn", "vveb_form", "WEB-FORRN"},
		{"run_10", "run_lO", "run_I0"},
		{"modern", "modem", "MODERN"},
		{"rev_vvview", "rev_vwiew", "rev_wview"},
		{"", "-", "__"},
	} {
		for _, a := range names {
			assert.True(t, spelling.LookAlike(names[0], a), "%s and %s", names[0], a)
			assert.True(t, spelling.LookAlike(a, names[0]), "%s and %s", a, names[0])
			assert.Equal(t, spelling.Outline(names[0]), spelling.Outline(a))
		}
	}
	for _, names := range [][2]string{
		{"mail", "mall"}, {"run_1", "run_i"}, {"run_1", "run_2"}, {"run_1", "run_11"}, {"web_fetch", "webfetch"}, {"file_read", "file_reed"},
		{"form", "forn"}, {"wow", "vow"}, {"r_n", "m"}, {"", "a"},
	} {
		assert.False(t, spelling.LookAlike(names[0], names[1]), names)
		assert.False(t, spelling.LookAlike(names[1], names[0]), names)
	}
	assert.True(t, spelling.LookAlike("mail", "maIl") && spelling.LookAlike("maIl", "mall"), "it is no equivalence")
}

// FuzzLookAlike: likeness goes both ways, is within outlines, and holds of a name and itself in any case.
func FuzzLookAlike(f *testing.F) {
	for _, seed := range [][2]string{{"tool", "t001"}, {"", "-"}, {"A-l1O0", "a_l1o0"}, {"\x00\xff", "ſ"}, {"rrn", "vvv"}, {"maIl", "mall"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		alike := spelling.LookAlike(a, b)
		if alike != spelling.LookAlike(b, a) {
			t.Fatalf("whether %q and %q look alike depends on their order", a, b)
		}
		if alike && spelling.Outline(a) != spelling.Outline(b) {
			t.Fatalf("%q and %q look alike, and have other outlines", a, b)
		}
		upper := []byte(a)
		for i, c := range upper {
			if 'a' <= c && c <= 'z' {
				upper[i] = c - 'a' + 'A'
			}
		}
		if !spelling.LookAlike(a, a) || !spelling.LookAlike(a, string(upper)) {
			t.Fatalf("%q does not look like itself", a)
		}
		if outline := spelling.Outline(a); spelling.Outline(outline) != outline || len(outline) > 2*len(a) {
			t.Fatalf("the outline of %q is not stable", a)
		}
	})
}
