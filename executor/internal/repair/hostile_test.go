package repair_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/tool"
)

// patience is the maximum time of a repair that an attacker made as costly as possible. Checking
// the same arguments against a schema may take half a second, and is done up to five times.
const patience = 20 * time.Second

// late is the maximum time of a repair with a deadline of 5 ms: half of the promised lateness of a call.
const late = 50 * time.Millisecond

// TestHostile: neither arguments nor schemas make a repair take long.
func TestHostile(t *testing.T) {
	const room = tool.MaxArgumentsBytes - 1000
	deep := func(opening, core, closing string) string {
		return strings.Repeat(opening, tool.MaxArgumentsDepth-2) + core + strings.Repeat(closing, tool.MaxArgumentsDepth-2)
	}
	var doubling, defaults strings.Builder
	for i := range 40 {
		fmt.Fprintf(&doubling, `"d%d":{"anyOf":[{"items":{"$ref":"#/$defs/d%d"},"maxItems":1},{"items":{"$ref":"#/$defs/d%[2]d"},"minItems":1}]},`, i, i+1)
	}
	for i := range 1500 {
		fmt.Fprintf(&defaults, `"p%d":{"type":"integer","default":1},`, i)
	}
	for _, c := range []struct{ name, schema, arguments string }{
		{"long arrays far inside", `{"properties":{"v":{"$ref":"#/$defs/l"}},"required":["x"],"$defs":{"l":{"items":{"$ref":"#/$defs/l"}}}}`, `{"v":` + deep("[", strings.Repeat("1,", room/2)+"1", "]") + `}`},
		{"objects far inside", `{"properties":{"v":{"$ref":"#"}},"required":["x"]}`, deep(`{"v":`, `{"y":"`+strings.Repeat("y", room)+`"}`, "}")},
		{"many members", `{"properties":{` + defaults.String() + `"z":{"type":"integer"}},"required":["x"]}`, `{"m0":1` + members(60_000) + `}`},
		{"defaults in many objects", `{"properties":{"l":{"items":{"properties":{` + defaults.String() + `"z":{}}}}},"required":["x"]}`, `{"l":[{}` + strings.Repeat(",{}", 100_000) + `]}`},
		{"alternatives inside each other", `{"properties":{"v":{"$ref":"#/$defs/d0"}},"$defs":{` + doubling.String() + `"d40":{"type":"integer"}}}`, `{"v":` + deep("[", `"x"`, "]") + `}`},
		{"a long list of alternatives", `{"properties":{"v":{"items":{"anyOf":[{"type":"integer","maximum":1},{"type":"integer","minimum":9}]}}}}`, `{"v":[5` + strings.Repeat(",5", 100_000) + `]}`},
		{"arrays to wrap", `{"properties":{"v":{"$ref":"#/$defs/l"}},"$defs":{"l":{"type":"array","items":{"$ref":"#/$defs/l"}}}}`, `{"v":"` + strings.Repeat("x", room) + `"}`},
		{"strings in strings", `{"properties":{"v":{"type":"object","properties":{"v":{"$ref":"#/properties/v"}}}}}`, `{"v":` + string(mustQuote(t, `{"v":`+string(mustQuote(t, `{"v":"`+strings.Repeat("x", room/2)+`"}`))+`}`)) + `}`},
		{"digits", `{"properties":{"v":{"items":{"type":"integer","maximum":1e300}}}}`, `{"v":[9e300` + strings.Repeat(",9e300", 100_000) + `]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := compile(t, c.schema)
			own := parse(t, c.arguments)
			r := newRepairer(t, s)
			start := time.Now()
			result := r.Repair(t.Context(), own, nil, check(s))
			took := time.Since(start)
			t.Log(took, len(result.Repairs))
			assert.Less(t, took, patience)
			assert.LessOrEqual(t, len(text(t, result.Arguments)), tool.MaxArgumentsBytes)
		})
	}
}

// TestDeadline: a repair ends soon after its deadline, also where a schema of a thousand definitions says the
// same again and again: each brings along the next one twice.
func TestDeadline(t *testing.T) {
	const definitions = 1000
	var chain strings.Builder
	for i := range definitions {
		fmt.Fprintf(&chain, `"d%d":{"$ref":"#/$defs/d%d","anyOf":[{"$ref":"#/$defs/d%[2]d"}]},`, i, i+1)
	}
	defs := `"$defs":{` + chain.String() + fmt.Sprintf(`"d%d":{"type":"string"}}`, definitions)
	for _, c := range []struct{ name, schema, arguments string }{
		{"one value", `{"properties":{"x":{"anyOf":[{"$ref":"#/$defs/d0"}]}},` + defs + `}`, `{"x":5}`},
		{"many values of two chains", `{"properties":{"x":{"allOf":[{"items":{"$ref":"#/$defs/d0"}},{"items":{"$ref":"#/$defs/d1"}}]}},` + defs + `}`, `{"x":[5` + strings.Repeat(",5", 20_000) + `]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRepairer(t, compile(t, c.schema))
			own := parse(t, c.arguments)
			for attempt := 0; ; attempt++ { // the machine may be busy
				ctx, stop := context.WithTimeout(t.Context(), 5*time.Millisecond)
				began := time.Now()
				r.Repair(ctx, own, nil, func(tool.Arguments) error { return errors.New("does not fit") })
				took := time.Since(began)
				stop()
				if took < late {
					return
				}
				require.Less(t, attempt, 5, "it took %s", took)
			}
		})
	}
}

func members(count int) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, `,"n%d":1`, i)
	}
	return b.String()
}

// TestAttackManySchemasOfOneValue: each of many values that no repair needs is of a thousand schemas, to look at which
// took ten seconds for 100 KB. It counts as work, so that nothing is repaired. The control is few such values.
func TestAttackManySchemasOfOneValue(t *testing.T) {
	var source strings.Builder
	for i := range 500 {
		fmt.Fprintf(&source, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"}]},`, i, i+1)
	}
	s := compile(t, `{"properties":{"n":{"allOf":[{"additionalProperties":{"$ref":"#/$defs/d0"}},{"additionalProperties":{"$ref":"#/$defs/d1"}}]},"x":{"type":"integer"}},"$defs":{`+source.String()+`"d500":{}}}`)
	for count, repairs := range map[int]int{4_000: 0, 40: 1} {
		assert.Len(t, run(t, s, `{"n":{"m":1`+members(count)+`},"x":"1"}`).Repairs, repairs)
	}
}

// TestAttackSharedWork: repairs that share a budget end when it is spent. The control is another budget.
func TestAttackSharedWork(t *testing.T) {
	s := compile(t, `{"properties":{"x":{"type":"integer"}}}`)
	budget := new(schema.Budget)
	repaired := func(ctx context.Context) int {
		return len(newRepairer(t, s).Repair(ctx, parse(t, `{"x":"1"}`), nil, check(s)).Repairs)
	}
	assert.Equal(t, 1, repaired(budget.With(t.Context())))
	schema.Spend(budget.With(t.Context()), 1<<30)
	assert.Zero(t, repaired(budget.With(t.Context())))
	assert.Equal(t, 1, repaired(t.Context()))
}
