package secrets_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/secrets"
)

// hostileTexts are patterns whose repetition makes some careless matcher slow.
var hostileTexts = map[string]string{
	"nearly the value":          value[:len(value)-1],
	"nearly the value, escaped": everyByte(value[:len(value)-1], `\u%04x`),
	"one letter":                "a",
	"percent signs":             "%",
	"backslashes":               `\`,
	"ampersands":                "&",
	"unfinished entities":       "&#x0000000",
	"all escapes":               `%25\\&amp;%2541\u0026lt;`,
	"escapes inside escapes":    `%255C\\u0026amp;\u0025`,
	"Base64 of nearly it":       base64.StdEncoding.EncodeToString([]byte("x" + value[:len(value)-1])),
	"hexadecimal":               "deadbeef",
	"line breaks":               "\n",
	"letters in lines":          "a\n",
	"escaped line breaks":       `abcdefgh\n`,
	"the value":                 value,
	"the value, escaped":        everyByte(value, "%%%02x"),
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

// TestMaskFirstStopsWithItsContext: a hostile answer cannot keep a call much longer than its
// deadline. Of texts that take many steps, no more than a part is done once that has come.
func TestMaskFirstStopsWithItsContext(t *testing.T) {
	const size = 1 << 20
	set := several(t, map[string]string{"A": value, "B": "b" + value, "C": "c" + value, "D": "d" + value})
	for _, name := range []string{"all escapes", "escapes inside escapes", "the value"} {
		t.Run(name, func(t *testing.T) {
			text := filled(hostileTexts[name], size)
			whole, took := time.Hour, time.Hour
			for range 5 { // the least of each: a busy machine only makes them longer
				whole = min(whole, duration(set, text))
				ctx := &ending{Context: t.Context(), after: 2}
				masked, err := set.MaskFirst(ctx, text, size)
				took = min(took, time.Since(ctx.ended))
				require.ErrorIs(t, err, context.Canceled)
				require.Nil(t, masked)
			}
			assert.Less(t, took, whole/2)
		})
	}
}

// ending is a context that ends once it was asked so many times whether it has.
type ending struct {
	context.Context
	after int
	ended time.Time
}

func (e *ending) Err() error {
	if e.after--; e.after > 0 {
		return nil
	}
	if e.ended.IsZero() {
		e.ended = time.Now()
	}
	return context.Canceled
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
