package schema

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
)

// ending is a context that ends once it was asked so many times whether it has.
type ending struct {
	context.Context
	after, looks int
	last         time.Time
	gaps         []time.Duration // between two looks
}

func newEnding(t *testing.T, after int) *ending {
	return &ending{Context: t.Context(), after: after, last: time.Now()}
}

func (e *ending) Err() error {
	now := time.Now()
	e.gaps, e.last = append(e.gaps, now.Sub(e.last)), now
	if e.looks++; e.looks <= e.after {
		return nil
	}
	return context.DeadlineExceeded
}

// longValidations take long, each for another reason.
var longValidations = map[string]struct{ schema, value string }{
	"a match":               {`{"pattern":"^(.*a){60}b$"}`, quoted("a", 120<<10)},
	"a match that fits":     {`{"pattern":"^(.*a){60}$"}`, quoted("a", 120<<10)},
	"a match of scripts":    {`{"pattern":"^(?:\\P{Han}*\\PN){29}b$"}`, quoted("a", 130<<10)},
	"a match of classes":    {`{"pattern":"` + strings.Repeat(`\\PN`, 16) + `"}`, quoted("1", 450<<10)},
	"a match of one pass":   {`{"pattern":"^[a-z]*$"}`, quoted("a", 4<<20)},
	"a match of a misfit":   {`{"anyOf":[{"pattern":"^(.*a){30}b$"},{"type":"null"}]}`, quoted("a", 120<<10)},
	"a numbers' list":       {`{"items":{"type":"integer"}}`, list("12345", 250_000)},
	"a list with a misfit":  {`{"items":{"type":"integer"}}`, list("12345", 100_000)[1:]},
	"rows":                  {`{"items":{"anyOf":[{"required":["x"]},{"type":"object"}]}}`, list(`{"id":1}`, 20_000)},
	"misfits":               {`{"items":{"type":"string"}}`, list("1", 20_000)},
	"members":               {`{"not":{"required":["x"]}}`, "{" + numbered(`"n%d":true`, 65_536) + "}"},
	"too many members":      {`{"type":"object"}`, "{" + numbered(`"n%d":true`, 250_000) + "}"},
	"members to be sorted":  {`{"uniqueItems":true}`, "[{" + numbered(`"n%d":true`, 150_000) + "}]"},
	"names without schemas": {`{"additionalProperties":false}`, "{" + numbered(`"n%d":true`, 30_000) + "}"},
	"names with patterns":   {`{"patternProperties":{"^[a-z0-9]*$":true},"additionalProperties":false}`, "{" + numbered(`"n%d":true`, 20_000) + "}"},
	"escapes":               {`{"type":"string"}`, quoted(`\u0061`, 500<<10)},
	"definitions":           {doublingOf(40), "1"},
}

func init() {
	c := longValidations["a list with a misfit"]
	c.value = `["x",` + c.value
	longValidations["a list with a misfit"] = c
}

func quoted(text string, times int) string { return `"` + strings.Repeat(text, times) + `"` }

// doublingOf is a schema in which each definition refers to the next one twice.
func doublingOf(levels int) string {
	definitions := numbered(`"d%d":{"allOf":[{"$ref":"#/$defs/e%[1]d"},{"$ref":"#/$defs/e%[1]d"}]}`, levels)
	for i := range levels {
		definitions += fmt.Sprintf(`,"e%d":{"$ref":"#/$defs/d%d"}`, i, i+1)
	}
	return fmt.Sprintf(`{"$ref":"#/$defs/d0","$defs":{%s,"d%d":{}}}`, definitions, levels)
}

// TestValidationsEndWithTheirContext: a validation ends soon after its context, wherever it has got to. The control:
// with a context that does not end, it continues, and looks at the context all the time.
func TestValidationsEndWithTheirContext(t *testing.T) {
	for _, name := range testsize.Sample(slices.Sorted(maps.Keys(longValidations)), 4) {
		c := longValidations[name]
		t.Run(name, func(t *testing.T) {
			compiled, err := Compile([]byte(c.schema))
			require.NoError(t, err)
			whole := newEnding(t, math.MaxInt)
			err = compiled.Validate(whole, []byte(c.value))
			require.NotErrorIs(t, err, context.DeadlineExceeded, "the control")
			parts := testsize.Of(3, 8)
			for part := range parts {
				ctx := newEnding(t, whole.looks*part/parts)
				require.ErrorIs(t, compiled.Validate(ctx, []byte(c.value)), context.DeadlineExceeded)
				assert.Equal(t, ctx.after+1, ctx.looks, "it continued")
			}
			assert.Equal(t, err == nil, compiled.Validate(t.Context(), []byte(c.value)) == nil, "an ended validation leaves no state")
		})
	}
}

// TestContextsWithLateTimers: a deadline that has come counts, also where no timer has said so yet.
func TestContextsWithLateTimers(t *testing.T) {
	compiled, err := Compile([]byte(`{}`))
	require.NoError(t, err)
	require.ErrorIs(t, compiled.Validate(untimed{t.Context()}, []byte(`1`)), context.DeadlineExceeded)
}

// untimed is a context that is not done although its deadline has passed.
type untimed struct{ context.Context }

func (untimed) Deadline() (time.Time, bool) { return time.Unix(0, 0), true }

// TestMatchesReadAsTheyMatch: a long text that is read has the same matches as one that is not.
func TestMatchesReadAsTheyMatch(t *testing.T) {
	m := &meter{ctx: t.Context()}
	for _, source := range []string{`a`, `b$`, `^a*b$`, `\bé\b`, `(?i)É+$`, `^(a|é)*$`, `a{5}b`, `\z`, `^\x00`, `(?s).\z`, `x`, `(?m)^b$`} {
		p := (&compiler{}).pattern(source, "")
		for _, end := range []string{"", "b", "é", " é ", "\nb", "\nb\n", "x\U0001F600", "\x00"} {
			text := strings.Repeat("aaaaa", 100) + end
			read := p.MatchReader(&watchedText{meter: m, every: 7, text: text})
			assert.Equal(t, p.MatchString(text), read, "%s %q", source, end)
		}
	}
}
