package registry

import (
	"testing"

	"github.com/caisson-run/caisson/internal/spelling"
	"github.com/caisson-run/caisson/manifests"
)

// FuzzNames feeds names as a model may write them to all that handles them.
func FuzzNames(f *testing.F) {
	for _, seed := range [][2]string{{"tool", "t001"}, {"", "-"}, {"A-l1O0", "a_l1o0"}, {"\x00\xff", "ſ"}, {"web_fetch", "wbe_fetch"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a) > 2*maxName || len(b) > 2*maxName {
			return
		}
		distance := spelling.Distance(a, b)
		if distance != spelling.Distance(b, a) {
			t.Fatalf("the distance of %q and %q depends on their order", a, b)
		}
		if longest := max(len(a), len(b)); longest <= maxName && (distance > longest || (distance == 0) != (a == b)) {
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
		if validName(b) && spelling.LookAlike(a, b) {
			if names.add(&entry{origin: Origin{Name: b}, manifest: &manifests.Manifest{}}) == nil {
				t.Fatalf("%q was registered in addition to %q", b, a)
			}
		}
	})
}
