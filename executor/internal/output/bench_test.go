package output_test

import (
	"strings"
	"testing"

	"github.com/caisson-run/caisson/executor/internal/output"
	"github.com/caisson-run/caisson/tool"
)

func BenchmarkCut(b *testing.B) {
	long := strings.Repeat("a line of output\n", 1<<20/17)
	for _, bench := range []struct {
		name   string
		result tool.Result
	}{
		{"fits/100B", tool.Result{Success: true, Output: long[:100]}},
		{"fits/32KiB", tool.Result{Success: true, Output: long[:32<<10]}},
		{"cut/64KiB", tool.Result{Success: true, Output: long[:64<<10]}},
		{"cut/1MiB", tool.Result{Success: true, Output: long}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			keep := newStore(b, 16<<20).Keeper(func(part string) string { return part })
			if strings.HasPrefix(bench.name, "cut") {
				store := newStore(b, 16<<20)
				keep = func(part, text string) string {
					return store.Keeper(func(part string) string { return part })(part, text)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				output.Cut(bench.result, 32<<10, keep, mark)
			}
		})
	}
}

func BenchmarkPage(b *testing.B) {
	store := newStore(b, 16<<20)
	store.Keep("r", strings.Repeat("a line of output\n", 1<<20/17))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := store.Page("r", 1<<19, 0); err != nil {
			b.Fatal(err)
		}
	}
}
