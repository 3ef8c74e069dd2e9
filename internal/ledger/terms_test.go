package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/tool"
)

// TestWordsWithOtherFilters: searches for words and anything else find what a look at each call finds. Some calls are
// appended long after they have ended, and tenants have ids of several digits.
func TestWordsWithOtherFilters(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		l := opened(t, ledger.Options{Location: location})
		random := rand.New(rand.NewPCG(3, 4))
		pick := func(name string, n int) string { return fmt.Sprintf("%s%d", name, random.IntN(n)) }
		var all []ledger.Entry
		for n := range 400 {
			e := entry(n, func(e *ledger.Entry) {
				e.Tenant, e.User, e.Session = pick("tenant", 12), pick("user", 3), pick("session", 3)
				e.Record.Function.Name, e.Record.Function.Arguments = pick("tool", 2), `"`+pick("word", 3)+" "+pick("word", 3)+`"`
				e.Time = time.Unix(int64(n)*100, 0)
				if random.IntN(5) == 0 {
					e.Time = time.Unix(random.Int64N(40_000)-10_000, 0)
				}
				if random.IntN(2) == 0 {
					e.Record.Result = tool.Result{Kind: tool.Denied}
				}
				if random.IntN(3) == 0 {
					e.Record.Denials = []tool.Denial{{Permission: "network"}}
				}
			})
			all = append(all, e)
		}
		appended(t, l, all...)
		some := 0
		for range 400 {
			f := ledger.Filter{Words: pick("word", 3), Limit: 1 + random.IntN(5)}
			maybe := func(set func()) {
				if random.IntN(3) == 0 {
					set()
				}
			}
			tenant := pick("tenant", 12)
			maybe(func() { f.Tenant = &tenant })
			maybe(func() { f.User = pick("user", 3) })
			maybe(func() { f.Session = pick("session", 3) })
			maybe(func() { f.Tool = pick("tool", 2) })
			maybe(func() { f.Outcome = []string{"success", "denied"}[random.IntN(2)] })
			maybe(func() { f.Denied = true })
			maybe(func() { f.From = time.Unix(random.Int64N(50_000)-10_000, 0) })
			maybe(func() { f.To = time.Unix(random.Int64N(50_000)-10_000, random.Int64N(2)*int64(time.Millisecond)) })
			maybe(func() { f.Words += ", " + pick("WORD", 3) })
			var want []string
			for _, e := range slices.Backward(all) {
				if meets(e, f) {
					want = append(want, e.Record.CallID)
				}
			}
			some += len(want)
			assert.Equal(t, want, found(t, l, f), "%+v", f)
		}
		assert.Greater(t, some, 1000, "most searches find something")
	})
}

// meets reports whether a call is what a filter asks for.
func meets(e ledger.Entry, f ledger.Filter) bool {
	outcome := string(e.Record.Result.Kind)
	if e.Record.Result.Success {
		outcome = "success"
	}
	given := func(filter, value string) bool { return filter == "" || filter == value }
	return (f.Tenant == nil || *f.Tenant == e.Tenant) && given(f.User, e.User) && given(f.Session, e.Session) &&
		given(f.Tool, e.Record.Function.Name) && given(f.Outcome, outcome) && (!f.Denied || len(e.Record.Denials) > 0) &&
		(f.From.IsZero() || !e.Time.Before(f.From)) && (f.To.IsZero() || e.Time.Before(f.To)) && hasWords(e, f.Words)
}

func hasWords(e ledger.Entry, words string) bool {
	var first, second, asked, other int
	if _, err := fmt.Sscanf(e.Record.Function.Arguments, `"word%d word%d"`, &first, &second); err != nil {
		return false
	}
	n, _ := fmt.Sscanf(words, "word%d, WORD%d", &asked, &other)
	return (asked == first || asked == second) && (n < 2 || other == first || other == second)
}
