package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module writes a Go module to a new folder.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestPublicPackages(t *testing.T) {
	root := module(t, map[string]string{
		"go.mod": "module example.com/m\n",
		"m.go": `package m
type (
	T struct{ Field int }
	I interface{ Method() }
	G[K, V any] struct{}
	t int
)
func F() {}
func f() {}
func (T) A() {}
func (*T) B() {}
func (*T) b() {}
func (t) C() {}
func (*G[K, V]) D() {}
const (
	C1, c2 = iota, iota
	C3 = 3
)
var V, _ = 1, 2
`,
		"m_windows.go":         "package m\nfunc F() {}\nfunc Windows() {}\n",
		"m_test.go":            "package m\nfunc Test() {}\n",
		"a/a.go":               "package a\n",
		"a/internal/b/b.go":    "package b\nfunc Hidden() {}\n",
		"a/testdata/c.go":      "package c\nfunc Hidden() {}\n",
		"a/.hidden/d.go":       "package d\nfunc Hidden() {}\n",
		"a/_hidden/d.go":       "package d\nfunc Hidden() {}\n",
		"cmd/program/main.go":  "package main\nfunc Hidden() {}\n",
		"other/go.mod":         "module example.com/other\n",
		"other/other.go":       "package other\nfunc Hidden() {}\n",
		"internal/d/deep/e.go": "package deep\nfunc Hidden() {}\n",
	})
	packages, err := publicPackages(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, folder := range slices.Sorted(maps.Keys(packages)) {
		got = append(got, folder+": "+strings.Join(slices.Sorted(maps.Keys(packages[folder])), " "))
	}
	want := []string{".: C1 C3 F G G.D I T T.A T.B V Windows", "a: "}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRun(t *testing.T) {
	files := map[string]string{"m.go": "package m\nfunc F() {}\nfunc G() {}\n"}
	for _, test := range []struct{ number, want string }{
		{"2\n", ""},
		{"1\n", "export 2 identifiers, and NUMBER allows 1: unexport what no other module needs, or move it"},
		{"3\n", "export only 2 identifiers: write 2 instead of 3 to NUMBER"},
		{"two\n", "NUMBER: strconv.Atoi"},
	} {
		number := filepath.Join(t.TempDir(), "number")
		if err := os.WriteFile(number, []byte(test.number), 0o600); err != nil {
			t.Fatal(err)
		}
		err := run(module(t, files), number)
		if test.want == "" {
			if err != nil {
				t.Errorf("%q: %v", test.number, err)
			}
			continue
		}
		if want := strings.ReplaceAll(test.want, "NUMBER", number); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", test.number, err, want)
		}
	}
	for name, broken := range map[string]map[string]string{
		"no package":     {"go.mod": "module example.com/m\n"},
		"broken file":    {"m.go": "package m\nfunc {\n"},
		"only a program": {"main.go": "package main\n"},
	} {
		if err := run(module(t, broken), filepath.Join(t.TempDir(), "number")); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
