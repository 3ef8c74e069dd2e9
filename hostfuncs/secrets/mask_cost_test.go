package secrets_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/secrets"
	"github.com/caisson-run/caisson/internal/testsize"
)

// hostileTexts are patterns whose repetition makes some careless matcher slow.
var hostileTexts = map[string]string{
	"nearly the value":          value[:len(value)-1],
	"nearly the value, escaped": unicodeOf(value[:len(value)-1], 1, `\u%04x`),
	"one letter":                "a",
	"percent signs":             "%",
	"percent, escaped":          "%25",
	"backslashes":               `\`,
	"surrogates":                `\ud83d`,
	"all escapes":               `%25\\%2541\u0026`,
	"Base64 of nearly it":       base64.StdEncoding.EncodeToString([]byte("x" + value[:len(value)-1])),
	"hexadecimal":               "deadbeef",
	"hexadecimal of nearly it":  hex.EncodeToString([]byte(value[:len(value)-1])),
	"separators":                "-:",
	"line breaks":               "\n",
	"letters in lines":          "a\n",
	"letters far away":          "a" + strings.Repeat(" ", secrets.MaxBetween),
	"escaped line breaks":       `abcdefgh\n`,
	"the value":                 value,
	"the value, escaped":        percentOf(value, 1, "%%%02x"),
	"the value in Base64":       base64.StdEncoding.EncodeToString([]byte(value)),
}

// TestMaskTakesLinearTime: eight times the text takes about eight times as long, whatever
// is in it. A quadratic matcher would take 64 times as long.
func TestMaskTakesLinearTime(t *testing.T) {
	periodic := strings.Repeat("a", secrets.MaxValue)
	sets := map[string]*secrets.Set{"value": one(t, inHeader("X"), value), "periodic": one(t, inHeader("X"), periodic)}
	for name, pattern := range hostileTexts {
		for kind, set := range sets {
			t.Run(name+"/"+kind, func(t *testing.T) {
				const size = 64 << 10
				short, long := filled(pattern, size), filled(pattern, 8*size)
				assert.Eventually(t, func() bool { // a busy machine measures nonsense now and then
					return duration(set, long) < 24*max(duration(set, short), 200*time.Microsecond)
				}, 10*time.Second, time.Millisecond)
			})
		}
	}
}

// TestMaskFirstStopsWithItsContext: whatever is in a text, also where nothing is found, no more than a few hundred
// kilobytes of work are done between two looks at the context, and MaskFirst is back soon after it has ended.
func TestMaskFirstStopsWithItsContext(t *testing.T) {
	size := testsize.Of(2<<20, 5<<20)
	set := several(t, map[string]string{"A": value, "B": "b" + value, "C": "c" + value, "D": strings.Repeat("d", secrets.MaxValue)})
	for name, pattern := range hostileTexts {
		t.Run(name, func(t *testing.T) {
			text := filled(pattern, size)
			whole := &ending{Context: t.Context(), after: math.MaxInt}
			began := time.Now()
			_, err := set.MaskFirst(whole, text, size)
			require.NoError(t, err)
			took := time.Since(began)
			require.GreaterOrEqual(t, whole.looks, size/(100<<10))
			for _, part := range []int{1, 3} { // of four
				for attempt := 0; ; attempt++ {
					ended := &ending{Context: t.Context(), after: whole.looks * part / 4}
					masked, err := set.MaskFirst(ended, text, size)
					late := time.Since(ended.ended)
					require.ErrorIs(t, err, context.Canceled)
					require.Nil(t, masked)
					if late < 20*time.Millisecond {
						break
					}
					require.Less(t, attempt, 3, "%s until it was back, of %s in all", late, took)
				}
			}
		})
	}
}

// TestMaskFirstSeesALateTimer: a context's own timer may be late on a busy machine.
func TestMaskFirstSeesALateTimer(t *testing.T) {
	masked, err := one(t, inHeader("X"), value).MaskFirst(overdue{t.Context()}, []byte(value), len(value))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Nil(t, masked)
}

// overdue is a context whose time is over, and that has not heard of it.
type overdue struct{ context.Context }

func (overdue) Deadline() (time.Time, bool) { return time.Now().Add(-time.Millisecond), true }

// ending is a context that ends once it was asked so many times whether it has.
type ending struct {
	context.Context
	after, looks int
	ended        time.Time
}

func (e *ending) Err() error {
	if e.looks++; e.looks <= e.after {
		return nil
	}
	if e.ended.IsZero() {
		e.ended = time.Now()
	}
	return context.Canceled
}

// TestAttackManyLongTexts: while as many long texts are masked as there are processors, another one waits, and leaves
// as soon as its context has ended. The controls: a short one does not wait, nor does a long one once there is a place.
func TestAttackManyLongTexts(t *testing.T) {
	set, long := one(t, inHeader("X"), value), filled("%25", 1<<20)
	leave := occupied(t, set)
	release := make(chan struct{})
	ended, cancel := context.WithCancel(t.Context())
	waits := held{ended, make(chan struct{}, 1), release}
	left := make(chan error, 1)
	go func() {
		_, err := set.MaskFirst(waits, long, len(long))
		left <- err
	}()
	require.NoError(t, errOf(set.MaskFirst(t.Context(), []byte(value), len(value))), "control")
	select {
	case <-waits.begun:
		assert.Fail(t, "it did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	cancel()
	close(release)
	require.ErrorIs(t, <-left, context.Canceled)
	leave()
	require.NoError(t, errOf(set.MaskFirst(t.Context(), long, len(long))), "control")
}

// occupied has as many long texts masked as there are processors, until leave is called.
func occupied(t *testing.T, set *secrets.Set) (leave func()) {
	t.Helper()
	long, release, masked := filled("%25", 1<<20), make(chan struct{}), make(chan error)
	places := runtime.GOMAXPROCS(0)
	for range places {
		ctx := held{t.Context(), make(chan struct{}, 1), release}
		go func() {
			_, err := set.MaskFirst(ctx, long, len(long))
			masked <- err
		}()
		<-ctx.begun
	}
	return func() {
		close(release)
		for range places {
			require.NoError(t, <-masked)
		}
	}
}

// held is a context that says when it is first asked whether it has ended, and answers once it may.
type held struct {
	context.Context
	begun, release chan struct{}
}

func (h held) Err() error {
	select {
	case h.begun <- struct{}{}:
	default:
	}
	<-h.release
	return h.Context.Err()
}

func filled(pattern string, size int) []byte {
	return []byte(strings.Repeat(pattern, size/len(pattern)+1)[:size])
}

func duration(set *secrets.Set, text []byte) time.Duration {
	start := time.Now()
	set.Mask(text)
	return time.Since(start)
}

func BenchmarkMask(b *testing.B) {
	const size = 1 << 20
	set := one(b, inHeader("X"), value)
	texts := map[string]string{
		"prose":  "It was the best of times, it was the worst of times, it was the age of wisdom. ",
		"JSON":   `{"title":"A \"quoted\" text","url":"https:\/\/example.com\/a?b=c%20d","n":12345.678,"ok":true},` + "\n",
		"HTML":   `<div class="row"><a href="/search?q=a&amp;page=2">Next &raquo;</a> text and more text</div>` + "\n",
		"Base64": base64.StdEncoding.EncodeToString([]byte("what an image holds, more or less so")),
	}
	for name, pattern := range hostileTexts {
		texts["hostile/"+name] = pattern
	}
	for name, pattern := range texts {
		text := filled(pattern, size)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				set.Mask(text)
			}
		})
	}
	values := map[string]string{}
	for i := range 10 {
		values[fmt.Sprintf("KEY_%c", 'A'+i)] = fmt.Sprintf("sk-%d-%s", i, value)
	}
	ten := several(b, values)
	text := filled(texts["JSON"], size)
	b.Run("JSON, ten secrets", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			ten.Mask(text)
		}
	})
}
