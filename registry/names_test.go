package registry

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

func TestEditDistance(t *testing.T) {
	tests := []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "abd", 1},
		{"abc", "acb", 1}, {"abcd", "badc", 2}, {"kitten", "sitting", 3}, {"ca", "abc", 3},
	}
	for _, test := range tests {
		assert.Equal(t, test.want, editDistance(test.a, test.b), "%s %s", test.a, test.b)
	}
}

// FuzzNames feeds names as a model may write them to all that handles them.
func FuzzNames(f *testing.F) {
	for _, seed := range [][2]string{{"tool", "t001"}, {"", "-"}, {"A-l1O0", "a_l1o0"}, {"\x00\xff", "ſ"}, {"web_fetch", "wbe_fetch"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a) > 2*maxName || len(b) > 2*maxName {
			return
		}
		distance := editDistance(a, b)
		if distance != editDistance(b, a) {
			t.Fatalf("the distance of %q and %q depends on their order", a, b)
		}
		if distance > max(len(a), len(b)) || (distance == 0) != (a == b) {
			t.Fatalf("the distance of %q and %q is %d", a, b, distance)
		}
		// A name resolves only as it was registered, to the letter.
		names := newNamespace()
		if !validName(a) {
			return
		}
		e := &entry{origin: Origin{Name: a}, manifest: &manifests.Manifest{}}
		if names.add(e) != nil {
			t.Fatalf("%q is refused in an empty namespace", a)
		}
		if _, ok := names.find(b); ok != (a == b) {
			t.Fatalf("%q resolves to %q", b, a)
		}
		if validName(b) && tool.LookAlike(a, b) {
			if names.add(&entry{origin: Origin{Name: b}, manifest: &manifests.Manifest{}}) == nil {
				t.Fatalf("%q got in beside %q", b, a)
			}
		}
	})
}
