package modules

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/tool"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func expand(t testing.TB, arguments string, templates ...string) ([]string, error) {
	t.Helper()
	var parsed []ArgTemplate
	for _, source := range templates {
		template := must(ParseArgTemplate(source))
		assert.Equal(t, source, template.String())
		parsed = append(parsed, template)
	}
	values := must(tool.ParseArguments(arguments))
	return ExpandArgs(parsed, values)
}

// TestAttackArrayInManyTemplates: an array that many templates name is read once.
func TestAttackArrayInManyTemplates(t *testing.T) {
	arguments := must(tool.ParseArguments(`{"a":[` + strings.Repeat(" ", 256<<10) + `]}`))
	template, err := ParseArgTemplate("{a}")
	require.NoError(t, err)
	cost := func(templates int) time.Duration {
		least := time.Hour
		for range 5 {
			began := time.Now()
			_, err := ExpandArgs(slices.Repeat([]ArgTemplate{template}, templates), arguments)
			least = min(least, time.Since(began))
			require.NoError(t, err)
		}
		return least
	}
	assert.Less(t, cost(256), 10*cost(1))
}

func TestExpandArgs(t *testing.T) {
	cases := map[string]struct {
		arguments string
		templates []string
		want      []string
	}{
		"nothing":                 {`{}`, nil, nil},
		"literals":                {`{}`, []string{"-v", "", "a b", "{{x}}"}, []string{"-v", "", "a b", "{x}"}},
		"a string":                {`{"a":"x y\n"}`, []string{"{a}"}, []string{"x y\n"}},
		"an empty string":         {`{"a":""}`, []string{"{a}"}, []string{""}},
		"numbers as written":      {`{"a":1.50,"b":-0}`, []string{"{a}", "x{b}"}, []string{"1.50", "x-0"}},
		"no exponents":            {`{"a":[2000e-1,1E2,0.1e1,15e-1,12.50e+1,1e-3,0e9,123456789012345678901e0]}`, []string{"{a}"}, []string{"200", "100", "1", "1.5", "125", "0.001", "0", "123456789012345678901"}},
		"booleans":                {`{"a":true}`, []string{"--all={a}"}, []string{"--all=true"}},
		"absent":                  {`{}`, []string{"x", "{a}", "y"}, []string{"x", "y"}},
		"null":                    {`{"a":null}`, []string{"{a}"}, nil},
		"an array":                {`{"a":["x",1,false]}`, []string{"{a}"}, []string{"x", "1", "false"}},
		"an empty array":          {`{"a":[]}`, []string{"{a}"}, nil},
		"inside text":             {`{"a":"x","b":2}`, []string{"s/{a}/{b}/"}, []string{"s/x/2/"}},
		"a dash after text":       {`{"a":"-x"}`, []string{"--name={a}"}, []string{"--name=-x"}},
		"a dash that is allowed":  {`{"a":"-x"}`, []string{"{a|dash}"}, []string{"-x"}},
		"a dash after --":         {`{"a":["-x","-y"],"b":-1}`, []string{"--", "{b}", "{a}"}, []string{"--", "-1", "-x", "-y"}},
		"no templates in values":  {`{"a":"{b}","b":"x"}`, []string{"{a}"}, []string{"{b}"}},
		"a parameter used twice":  {`{"a":"x"}`, []string{"{a}", "{a}{a}"}, []string{"x", "xx"}},
		"an odd parameter's name": {`{"a-b.c":"x"}`, []string{"{a-b.c}"}, []string{"x"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, must(expand(t, c.arguments, c.templates...)))
		})
	}
}

// TestAttackExponents: a number whose digits would take long to write is refused at once.
func TestAttackExponents(t *testing.T) {
	for _, number := range []string{"1e401", "1e-401", "1e999999999", "1e99999999999999999999"} {
		_, err := expand(t, `{"a":`+number+`}`, "{a}")
		assert.ErrorIs(t, err, errArgs, number)
	}
	_, err := expand(t, `{"a":1e300}`, "{a}")
	assert.NoError(t, err)
}

func TestExpandArgsRefuses(t *testing.T) {
	cases := map[string]struct {
		arguments string
		templates []string
		want      string
	}{
		"an option":                     {`{"a":"--output=/etc"}`, []string{"{a}"}, `a: must not start with "-"`},
		"an option in an array":         {`{"a":["x","-r"]}`, []string{"{a}"}, `a: must not start with "-"`},
		"an option before text":         {`{"a":"-r"}`, []string{"{a}.txt"}, `a: must not start with "-"`},
		"an option after empty ones":    {`{"a":"","b":"-r"}`, []string{"{a}{b}"}, `b: must not start with "-"`},
		"an option by being empty":      {`{"a":""}`, []string{"{a}-rf"}, "a: must not be empty, because what follows would become an option"},
		"a negative number":             {`{"a":-1}`, []string{"{a}"}, `a: must not start with "-"`},
		"-- that comes from a value":    {`{"a":"--","b":"-x"}`, []string{"{a|dash}", "{b}"}, `b: must not start with "-"`},
		"a value before --":             {`{"a":"-x"}`, []string{"{a}", "--"}, `a: must not start with "-"`},
		"NUL":                           {`{"a":"x\u0000y"}`, []string{"{a|dash}"}, "a: must not have a NUL"},
		"an object":                     {`{"a":{}}`, []string{"{a}"}, "a: want a string, a number or a boolean"},
		"an object in an array":         {`{"a":[{}]}`, []string{"{a}"}, "a: want a string, a number or a boolean"},
		"an array in an array":          {`{"a":[[]]}`, []string{"{a}"}, "a: want a string, a number or a boolean"},
		"null in an array":              {`{"a":[null]}`, []string{"{a}"}, "a: null is not allowed"},
		"an array inside text":          {`{"a":["x"]}`, []string{"--a={a}"}, "a: want a string, a number or a boolean"},
		"an absent value inside text":   {`{}`, []string{"--a={a}"}, "a: required here, but missing"},
		"a null inside text":            {`{"a":null}`, []string{"--a={a}"}, "a: required here, but missing"},
		"too many":                      {`{"a":[` + strings.Repeat("1,", 1024) + `1]}`, []string{"{a}"}, "a: 1025 items are over the limit"},
		"too many together":             {`{"a":[` + strings.Repeat("1,", 600) + `1]}`, []string{"{a}", "{a}"}, "over the limit"},
		"too long":                      {`{"a":"` + strings.Repeat("x", 128<<10) + `"}`, []string{"{a}"}, "over the limit"},
		"too long by being used, again": {`{"a":"` + strings.Repeat("x", 64<<10) + `"}`, []string{"{a}{a}{a}"}, "over the limit"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := expand(t, c.arguments, c.templates...)
			assert.Nil(t, got)
			require.ErrorIs(t, err, errArgs)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// The control of the refusals above: without the rule, a value becomes an option.
func TestExpandArgsControl(t *testing.T) {
	assert.Equal(t, []string{"--output=/etc"}, must(expand(t, `{"a":"--output=/etc"}`, "{a|dash}")))
}

func TestParseArgTemplateRefuses(t *testing.T) {
	for _, source := range []string{"{", "}", "{a", "a}", "{}", "{a|}", "{a|upper}", "{a|dash|dash}", "{a b}", "{a{b}}", "a\x00", "{{}"} {
		_, err := ParseArgTemplate(source)
		assert.Error(t, err, source)
	}
}

func FuzzExpandArgs(f *testing.F) {
	for _, source := range []string{"{a}", "--x={a}", "{a|dash}", "--", "{{}}", "{b}{a}", "{", "x", "{a}-"} {
		for _, arguments := range []string{`{}`, `{"a":"-x"}`, `{"a":["y",1]}`, `{"a":"","b":"-"}`, `{"a":"\u0000"}`} {
			f.Add(source, arguments)
		}
	}
	f.Fuzz(func(t *testing.T, source, text string) {
		template, err := ParseArgTemplate(source)
		if err != nil {
			return
		}
		arguments, err := tool.ParseArguments(text)
		if err != nil {
			return
		}
		args, err := ExpandArgs([]ArgTemplate{template}, arguments)
		if err != nil {
			require.ErrorIs(t, err, errArgs)
			return
		}
		for _, arg := range args {
			assert.NotContains(t, arg, "\x00")
			if strings.HasPrefix(arg, "-") {
				assert.True(t, strings.HasPrefix(source, "-") || strings.Contains(source, "|dash"), "%q became %q", source, arg)
			}
		}
	})
}

func TestExpandArgsLeavesTheArgumentsAlone(t *testing.T) {
	const text = `{"a":["x","yy",3]}`
	arguments := must(tool.ParseArguments(text))
	template, err := ParseArgTemplate("{a}")
	require.NoError(t, err)
	for range 2 {
		assert.Equal(t, []string{"x", "yy", "3"}, must(ExpandArgs([]ArgTemplate{template}, arguments)))
	}
	assert.Equal(t, text, string(must(arguments.MarshalJSON())))
}
