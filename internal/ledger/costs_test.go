package ledger_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

var (
	costRecords = flag.Int("records", 1_000_000, "how many records BenchmarkRecords searches; they take 4 KB each")
	costDir     = flag.String("records-in", "", "the folder of a ledger that BenchmarkRecords fills once, and keeps")
)

// The bars: the 95th percentile of a search, and the size of the file beside the JSON of the records.
const (
	barFilters  = 100 * time.Millisecond
	barWords    = 300 * time.Millisecond
	barWithout  = 1.5
	barWith     = 2.5
	costCallers = 64
)

// shares are how much of the calls each tenant makes.
var shares = []float64{0.6, 0.2, 0.1, 0.05, 0.03, 0.015, 0.004, 0.001}

// world makes the calls of a ledger that is in use: few tenants make most calls, and few tools, users and words are
// found often. Users of one department do not use the tools of the other.
type world struct {
	random   *rand.Rand
	vocab    []string
	words    []int32 // ranks of words, each as often as it is used
	sessions [][]string
	made     int
}

const (
	costVocab = 100_000
	costUsers = 2000
	costTools = 40
	costDays  = 90
)

func newWorld() *world {
	w := &world{random: rand.New(rand.NewPCG(1, 2)), words: make([]int32, 1<<22), sessions: make([][]string, len(shares))}
	syllables := strings.Fields("ba ce di fo gu ha je ki lo mu na pe qui ro su ta ve wi xo zu")
	for rank := range costVocab {
		word := ""
		for n := rank + len(syllables); n > 0; n /= len(syllables) {
			word += syllables[n%len(syllables)]
		}
		w.vocab = append(w.vocab, word)
	}
	for i := range w.words {
		w.words[i] = int32(w.skewed(costVocab))
	}
	return w
}

// skewed returns a rank below n, the more often the smaller it is (Zipf's law).
func (w *world) skewed(n int) int {
	return int(math.Exp(w.random.Float64()*math.Log(float64(n)+1))) - 1
}

func (w *world) text(size int) string {
	var b strings.Builder
	for b.Len() < size {
		b.WriteString(w.vocab[w.words[w.random.IntN(len(w.words))]])
		b.WriteByte(' ')
	}
	return b.String()
}

func tenantNamed(n int) string { return fmt.Sprintf("tenant-%d", n) }
func toolNamed(n int) string   { return fmt.Sprintf("tool_%d", n) }
func userNamed(tenant, n int) string {
	return fmt.Sprintf("user-%d-%d@example.com", tenant, n)
}

// next returns the next call.
func (w *world) next(total int) ledger.Entry {
	tenant, share := 0, w.random.Float64()
	for share -= shares[0]; share > 0 && tenant < len(shares)-1; share -= shares[tenant] {
		tenant++
	}
	user := w.skewed(costUsers)
	named := w.skewed(costTools/2)*2 + user%2
	if sessions := w.sessions[tenant]; len(sessions) == 0 || w.random.IntN(20) == 0 {
		w.sessions[tenant] = append(sessions, fmt.Sprintf("session-%d-%d", tenant, len(sessions)))
	}
	session := len(w.sessions[tenant]) - 1 - min(w.skewed(200), len(w.sessions[tenant])-1)
	size := int(200 * math.Pow(4096.0/200, w.random.Float64()))
	arguments := size / (2 + w.random.IntN(8))
	at := costStart.Add(time.Duration(float64(w.made) / float64(total) * float64(costDays*24*time.Hour)))
	w.made++
	fuel := w.random.Int64N(1e9)
	r := tool.Record{
		Call: tool.Call{ID: fmt.Sprintf("call_%024x", w.random.Uint64()), Type: "function", Function: tool.Function{
			Name: toolNamed(named), Arguments: `{"query":"` + w.text(arguments) + `"}`,
		}},
		CallID: fmt.Sprintf("%012x-7aa0-8%03x-%012x", at.UnixMilli(), w.random.IntN(1<<12), w.random.Uint64()>>16),
		Result: tool.Result{Success: true, Output: w.text(size - arguments)}, ExecutionTime: 12 * time.Millisecond,
		Usage: tool.Usage{Fuel: &fuel, MemoryBytes: 1 << 20, Wall: 11 * time.Millisecond, Queue: 40 * time.Microsecond},
	}
	r.CallID = r.CallID[:8] + "-" + r.CallID[8:]
	if kind := w.skewed(50); kind > 15 {
		kinds := tool.Kinds()
		r.Result = tool.Result{Kind: kinds[w.skewed(len(kinds))], Error: r.Result.Output}
	}
	if w.random.IntN(30) == 0 {
		r.Denials = []tool.Denial{{Permission: "network", Value: "https://example.com/" + w.text(20), Rule: "network: none"}}
	}
	return ledger.Entry{
		Time: at, Tenant: tenantNamed(tenant), User: userNamed(tenant, user), Session: w.sessions[tenant][session],
		Batch: "0199f3c2-5d1e-7aa0-b3a5-6f0d9c1e2b47", Source: "/srv/tools/" + toolNamed(named),
		Manifest: "/srv/tools/" + toolNamed(named) + "/tool.yaml", Record: r,
	}
}

var costStart = time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)

// fill appends n calls, as fast as they are committed in large groups, and returns the bytes of their JSON.
func (w *world) fill(ctx context.Context, tb testing.TB, l *ledger.Ledger, n, total, callers int) {
	tb.Helper()
	calls := make(chan ledger.Entry, callers)
	var failed atomic.Pointer[error]
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for entry := range calls {
				if err := l.Append(ctx, entry); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	for range n {
		calls <- w.next(total)
	}
	close(calls)
	running.Wait()
	if err := failed.Load(); err != nil {
		require.NoError(tb, *err)
	}
}

// BenchmarkAppend measures calls of 64 callers until they are durable.
func BenchmarkAppend(b *testing.B) {
	for name, without := range map[string]bool{"words": false, "without words": true} {
		b.Run(name, func(b *testing.B) {
			l := noerr.Get(ledger.Open(b.Context(), ledger.Options{Location: filepath.Join(b.TempDir(), "ledger"),
				NoWords: without, KeepCalls: math.MaxInt64, KeepBytes: math.MaxInt64}))(b)
			w := newWorld()
			b.ResetTimer()
			w.fill(b.Context(), b, l, b.N, b.N, costCallers)
			b.StopTimer()
			require.NoError(b, l.Close(b.Context()))
		})
	}
}

// BenchmarkRecords measures searches in a ledger of a million records, and the size of its file. It fails if a bar is
// missed.
func BenchmarkRecords(b *testing.B) {
	n, dir := *costRecords, *costDir
	if dir == "" {
		dir = b.TempDir()
		options := ledger.Options{Location: filepath.Join(dir, "without"), NoWords: true}
		filled(b, options, n/5)
		require.NoError(b, os.RemoveAll(options.Location))
	}
	l, w := filled(b, ledger.Options{Location: filepath.Join(dir, "ledger")}, n)
	defer func() { assert.NoError(b, l.Close(context.WithoutCancel(b.Context()))) }()
	w.search(b, l)
}

// filled returns a ledger with n calls, and logs its size.
func filled(b *testing.B, options ledger.Options, n int) (*ledger.Ledger, *world) {
	b.Helper()
	options.KeepCalls, options.KeepBytes = math.MaxInt64, math.MaxInt64
	marker := options.Location + ".filled"
	w, began := newWorld(), time.Now()
	l := noerr.Get(ledger.Open(b.Context(), options))(b)
	if _, err := os.Stat(marker); err != nil {
		w.fill(b.Context(), b, l, n, n, 512)
		b.Logf("%d calls in %.0f s", n, time.Since(began).Seconds())
		require.NoError(b, l.Close(b.Context()))
		l = noerr.Get(ledger.Open(b.Context(), options))(b)
		require.NoError(b, os.WriteFile(marker, nil, 0o600))
	} else {
		for range n {
			w.next(n)
		}
	}
	info := noerr.Get(os.Stat(filepath.Join(options.Location, "ledger.db")))(b)
	var calls, content int64
	db := noerr.Get(sql.Open("sqlite", filepath.Join(options.Location, "ledger.db")))(b)
	require.NoError(b, db.QueryRowContext(b.Context(), "select sum(calls), sum(bytes) from tenants").Scan(&calls, &content))
	require.NoError(b, db.Close())
	bar := barWith
	if options.NoWords {
		bar = barWithout
	}
	ratio := float64(info.Size()) / float64(content)
	b.Logf("%d calls, %d bytes of JSON each; the file has %.2f times as many; the bar is %.1f", calls, content/calls, ratio, bar)
	if ratio > bar {
		b.Errorf("the file is too large")
	}
	return l, w
}

// choices returns ways to ask for a filter: values that are rare and values that are frequent.
func (w *world) choices(tenant int) map[string]func() func(f *ledger.Filter) {
	rank := func(n int) int { // half of them as often as they are used, half rare ones
		if w.random.IntN(2) == 0 {
			return w.random.IntN(n)
		}
		return w.skewed(n)
	}
	set := func(of func(f *ledger.Filter) *string, value func() string) func() func(f *ledger.Filter) {
		return func() func(f *ledger.Filter) {
			chosen := value()
			return func(f *ledger.Filter) { *of(f) = chosen }
		}
	}
	return map[string]func() func(f *ledger.Filter){
		"tenant": func() func(f *ledger.Filter) {
			name := tenantNamed(tenant)
			return func(f *ledger.Filter) { f.Tenant = &name }
		},
		"tool": set(func(f *ledger.Filter) *string { return &f.Tool }, func() string { return toolNamed(rank(costTools)) }),
		"user": set(func(f *ledger.Filter) *string { return &f.User }, func() string { return userNamed(tenant, rank(costUsers)) }),
		"session": set(func(f *ledger.Filter) *string { return &f.Session }, func() string {
			return w.sessions[tenant][rank(len(w.sessions[tenant]))]
		}),
		"outcome": set(func(f *ledger.Filter) *string { return &f.Outcome }, func() string {
			kinds := tool.Kinds()
			if rank := rank(len(kinds) + 1); rank > 0 {
				return string(kinds[rank-1])
			}
			return "success"
		}),
		"denied": func() func(f *ledger.Filter) { return func(f *ledger.Filter) { f.Denied = true } },
		"time": func() func(f *ledger.Filter) {
			from := costStart.Add(time.Duration(w.random.Int64N(int64(costDays * 24 * time.Hour))))
			to := from.Add(time.Duration(math.Exp(w.random.Float64() * math.Log(float64(costDays*24*time.Hour)))))
			return func(f *ledger.Filter) { f.From, f.To = from, to }
		},
		"cursor": nil, // of the search without it
	}
}

// search measures each pair of filters, and words alone and with filters.
func (w *world) search(b *testing.B, l *ledger.Ledger) {
	choices := w.choices(0)
	var names []string
	for name := range choices {
		names = append(names, name)
	}
	slices.Sort(names)
	const each = 60
	measure := func(title string, bar time.Duration, build func() ledger.Filter) {
		var times []time.Duration
		var worst ledger.Filter
		found := 0
		for range each {
			f := build()
			began := time.Now()
			page, err := l.Calls(b.Context(), f)
			took := time.Since(began)
			require.NoError(b, err)
			if times = append(times, took); took == slices.Max(times) {
				worst = f
			}
			found += len(page.Entries)
		}
		slices.Sort(times)
		p95 := times[each*95/100]
		note := ""
		if p95 > bar {
			note = fmt.Sprintf(" MISSED, worst: %+v", worst)
			b.Errorf("%s", title)
		}
		b.Logf("%-34s p50 %6.1f ms  p95 %6.1f ms  max %6.1f ms  found %d%s", title, ms(times[each/2]), ms(p95),
			ms(times[each-1]), found/each, note)
	}
	// deep gives a filter the cursor of a page that is about halfway.
	deep := func(f ledger.Filter) ledger.Filter {
		halfway := f
		halfway.To, halfway.Limit = costStart.Add(time.Duration(w.random.Int64N(int64(costDays*24*time.Hour)))), 1
		page, err := l.Calls(b.Context(), halfway)
		require.NoError(b, err)
		f.Cursor = page.Cursor
		return f
	}
	build := func(of ...string) func() ledger.Filter {
		return func() (f ledger.Filter) {
			f.Limit = 20
			for _, name := range of {
				if choose := choices[name]; choose != nil {
					choose()(&f)
				}
			}
			if slices.Contains(of, "cursor") {
				f = deep(f)
			}
			return f
		}
	}
	for i, one := range names {
		measure(one, barFilters, build(one))
		for _, other := range names[i+1:] {
			measure(one+" "+other, barFilters, build(one, other))
			if one != "tenant" && other != "tenant" {
				measure("tenant "+one+" "+other, barFilters, build("tenant", one, other))
			}
		}
	}
	measure("a tool and a user who does not call it", barFilters, func() ledger.Filter {
		n := w.random.IntN(10)
		return ledger.Filter{Tool: toolNamed(w.random.IntN(5)*2 + (n+1)%2), User: userNamed(0, n), Limit: 20}
	})
	for _, kind := range []struct {
		name string
		word func() string
	}{
		{"a frequent word", func() string { return w.vocab[w.random.IntN(5)] }},
		{"a word", func() string { return w.vocab[w.skewed(costVocab)] }},
		{"a rare word", func() string { return w.vocab[costVocab-1-w.random.IntN(costVocab/4)] }},
		{"an unknown word", func() string { return "unknown" }},
		{"two words", func() string { return w.vocab[w.skewed(costVocab)] + " " + w.vocab[w.skewed(costVocab)] }},
		{"three rarer words", func() string {
			return w.vocab[100+w.random.IntN(900)] + " " + w.vocab[100+w.random.IntN(900)] + " " + w.vocab[1000+w.random.IntN(900)]
		}},
	} {
		worded := func(of ...string) func() ledger.Filter {
			return func() ledger.Filter {
				f := build(of...)()
				f.Words = kind.word()
				return f
			}
		}
		measure(kind.name, barWords, worded())
		for _, name := range names {
			measure(kind.name+", "+name, barWords, worded(name))
			if name != "tenant" {
				measure(kind.name+", tenant "+name, barWords, worded("tenant", name))
			}
		}
	}
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }
