package schema

import (
	"encoding/json"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/jsontext"
)

var literals = []string{"0", "-0", "0.0", "-0e5", "1", "-1", "1.0", "10e-1", "0.1e1", "100", "1e2", "1.00e2", "12", "123", "1.23", "0.00123", "-12", "-123", "9007199254740993", "9007199254740992", "1e300", "1e-300", "1E+3", "-2.5e-3"}

// FuzzDecimal compares numbers with exact fractions.
func FuzzDecimal(f *testing.F) {
	for _, a := range literals {
		for _, b := range literals {
			f.Add(a, b)
		}
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, literal := range []string{a, b} {
			var number json.Number
			if json.Unmarshal([]byte(literal), &number) != nil || string(number) != literal || checkNumber(literal) != nil {
				return
			}
		}
		x, valid := new(big.Rat).SetString(a)
		require.True(t, valid)
		y, valid := new(big.Rat).SetString(b)
		require.True(t, valid)
		first, second := parseDecimal(a), parseDecimal(b)
		assert.Equal(t, x.Cmp(y), first.compare(second), "%s and %s", a, b)
		assert.Equal(t, x.Cmp(y) == 0, string(first.appendKey(nil)) == string(second.appendKey(nil)), "%s and %s", a, b)
		assert.Equal(t, x.IsInt(), first.isWhole(), a)
	})
}

func TestCanonical(t *testing.T) {
	text := func(source string) string {
		written, complete := canonical(new(meter), value(t, source), maxConstantBytes)
		require.True(t, complete)
		return string(written)
	}
	for _, same := range [][2]string{{`1`, `1.0`}, {`{"a":1,"b":[2]}`, `{"b":[2e0],"a":1}`}, {`"é"`, `"\u00e9"`}, {`-0`, `0`}} {
		assert.Equal(t, text(same[0]), text(same[1]))
	}
	different := []string{`null`, `false`, `true`, `0`, `1`, `11`, `"1"`, `""`, `[]`, `{}`, `[1]`, `[1,1]`, `[[1],1]`, `[[1,1]]`, `["1",1]`, `{"a":1}`, `{"a":"1"}`, `["a",1]`, `"a"`, `["s1:a"]`, `["a","a"]`, `["as1:a"]`, `[[],[]]`, `[[[]]]`, `[12,3]`, `[1,23]`}
	seen := map[string]string{}
	for _, source := range different {
		other, twice := seen[text(source)]
		assert.False(t, twice, "%s and %s", source, other)
		seen[text(source)] = source
	}
}

func TestShowCostsNoMoreThanItShows(t *testing.T) {
	wide := value(t, `{ "list" : `+list(`"text"`, 100_000)+`}`)
	allocated := testing.AllocsPerRun(10, func() { show(wide) })
	assert.Less(t, allocated, 1000.0)
	assert.Equal(t, `{"list":["text","text","text","text","text","text","text","t…`, show(wide))
	assert.Equal(t, `{"a":[1,{"b":null}],"c":"é \" "}`, show(value(t, `{"a" : [1, {"b":null}], "c":"é \" "}`)))
}

func value(t *testing.T, source string) jsontext.Value {
	t.Helper()
	v, err := read(t.Context(), source, MaxValueBytes, maxValueNameBytes)
	require.NoError(t, err)
	return v
}
