package patterns

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// plainly is a second implementation: it tries each expression on each line.
func plainly(t testing.TB, patterns []string, o Options, text string) (lines []int) {
	t.Helper()
	for number, line := range strings.Split(text, "\n") {
		for _, pattern := range patterns {
			if !o.Regex {
				pattern = regexp.QuoteMeta(pattern)
			}
			if !o.CaseSensitive {
				pattern = "(?i)" + pattern
			}
			if regexp.MustCompile(pattern).MatchString(strings.TrimSuffix(line, "\r")) {
				lines = append(lines, number)
				break
			}
		}
	}
	if strings.HasSuffix(text, "\n") && len(lines) > 0 && lines[len(lines)-1] == strings.Count(text, "\n") {
		lines = lines[:len(lines)-1] // there is no line after the last line feed
	}
	return lines
}

func found(s *Set, text string) (lines []int) {
	s.Find([]byte(text), len(text), func(l Line) bool {
		lines = append(lines, strings.Count(text[:l.Start], "\n"))
		return true
	})
	return lines
}

func TestPatterns(t *testing.T) {
	for _, test := range []struct {
		patterns      []string
		options       Options
		text          string
		want          []int
		hasNoShortcut bool
	}{
		{patterns: []string{"fox"}, text: "a\nThe FOX\nfo\nx\nfoxes\n", want: []int{1, 4}},
		{patterns: []string{"fox"}, options: Options{CaseSensitive: true}, text: "The FOX\nfox", want: []int{1}},
		{patterns: []string{"b", "a.c"}, text: "abc\na.c\nxyz\nadc", want: []int{0, 1}},
		{patterns: []string{"ab", "b"}, text: "a\nb\nab\n", want: []int{1, 2}},
		{patterns: []string{"aab"}, text: "aaaab", want: []int{0}},
		{patterns: []string{"straße", "ΟΔΟΣ"}, text: "STRASSE\nSTRAẞE\nοδος", want: []int{1, 2}},
		{patterns: []string{"k"}, text: "\u212a\nK", want: []int{0, 1}},
		{patterns: []string{"黑猫"}, text: "我的黑猫\n黑 猫", want: []int{0}},
		{patterns: []string{`^a+$`}, options: Options{Regex: true}, text: "aaa\r\nab\nba\n\na", want: []int{0, 4}},
		{patterns: []string{`\bcat\b`}, options: Options{Regex: true}, text: "concat\ncat's\ncats", want: []int{1}},
		{patterns: []string{`a.{2}b`}, options: Options{Regex: true}, text: "a字字b\na字b\naxxb", want: []int{0, 2}},
		{patterns: []string{`[^a]b`, `[é-ü]x`}, options: Options{Regex: true}, text: "ab\n\nb\n字b\nüx\nzx", want: []int{3, 4}},
		{patterns: []string{`x*`}, options: Options{Regex: true}, text: "\na\n", want: []int{0, 1}},
		{patterns: []string{`a\nb`, `\n`}, options: Options{Regex: true}, text: "a\nb", want: nil},
		{patterns: []string{`[\n]|c`}, options: Options{Regex: true}, text: "a\nbc", want: []int{1}},
		{patterns: []string{`(?-i)A|b`}, options: Options{Regex: true}, text: "a\nA\nB", want: []int{1}},
		{patterns: []string{`(a|b)?c+(d|)e*`}, options: Options{Regex: true}, text: "ab\nc", want: []int{1}},
		{patterns: []string{"\ufffd"}, text: "a\n\xff\n", want: []int{1}},
		{patterns: []string{`a.c`}, options: Options{Regex: true}, text: "a\xffc", want: []int{0}},
		{patterns: []string{`(a{30}){30}b`, "x"}, options: Options{Regex: true}, text: "a\nx", want: []int{1}},
		{patterns: []string{`(\pL{20}){49}`, `(\pL{20}){49}z`, `(\pL{20}){49}y`, `(\pL{20}){49}x`, "q"},
			options: Options{Regex: true}, text: "a\nq", want: []int{1}, hasNoShortcut: true},
	} {
		t.Run(test.patterns[0], func(t *testing.T) {
			s, err := Compile(test.patterns, test.options)
			require.NoError(t, err)
			assert.Equal(t, test.hasNoShortcut, s.candidates == nil)
			assert.Equal(t, test.want, found(s, test.text))
			assert.Equal(t, plainly(t, test.patterns, test.options, test.text), found(s, test.text))
		})
	}
}

func TestPatternsThatAreRefused(t *testing.T) {
	for pattern, o := range map[string]Options{"": {}, "a\nb": {}, "(": {Regex: true}, "a{1001}": {Regex: true}, `(?=a)`: {Regex: true}} {
		_, err := Compile([]string{"x", pattern}, o)
		require.ErrorContains(t, err, "pattern")
	}
}

func TestMatchesStartBeforeTheLimit(t *testing.T) {
	s, err := Compile([]string{"one two"}, Options{})
	require.NoError(t, err)
	count := func(text string, limit int) (n int) {
		s.Find([]byte(text), limit, func(Line) bool { n++; return true })
		return n
	}
	assert.Equal(t, 1, count("one two three", 4))
	assert.Equal(t, 1, count("one two three", 13))
	assert.Equal(t, 0, count("a one two", 2))
	assert.Equal(t, 1, count("a one two", 3))
}

func TestPlaces(t *testing.T) {
	s, err := Compile([]string{"two", "TWO one"}, Options{})
	require.NoError(t, err)
	var lines []Line
	s.Find([]byte("one\none two one\r\ntwo"), 20, func(l Line) bool { lines = append(lines, l); return false })
	assert.Equal(t, []Line{{Start: 4, End: 15, MatchStart: 8, MatchEnd: 11, PatternIndex: 0}}, lines)
}

// TestExhaustion: if an automaton has too many states, only the expressions search, and find all lines.
func TestExhaustion(t *testing.T) {
	patterns := []string{`a[ab]{60}c`}
	s, err := Compile(patterns, Options{Regex: true})
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for range 3000 {
		for range 200 {
			text.WriteByte("ab"[random.IntN(2)])
		}
		text.WriteString([]string{"\n", "c\n"}[random.IntN(2)])
	}
	assert.Equal(t, plainly(t, patterns, Options{Regex: true}, text.String()), found(s, text.String()))
	assert.Nil(t, s.candidates)
}

// TestRandomPatterns compares with the second implementation.
func TestRandomPatterns(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 0))
		pick := func(from []string, most int) string {
			var b strings.Builder
			for range 1 + random.IntN(most) {
				b.WriteString(from[random.IntN(len(from))])
			}
			return b.String()
		}
		o := Options{Regex: seed%2 == 0, CaseSensitive: seed%3 == 0}
		var patterns []string
		for len(patterns) < 1+random.IntN(3) {
			pattern := pick([]string{"a", "B", "b", "é", "É", "字", " ", "ſ", "s"}, 4)
			if o.Regex {
				pattern = pick([]string{"a", "B", ".", "é", "字", "[a-b]", "[^a]", "(a|bb)", "x*", "b+", "a?", "^", "$", `\b`, `\pL`, "[é字]", `\s`, "s{2,3}", "|"}, 6)
			}
			if _, err := regexp.Compile(pattern); err == nil {
				patterns = append(patterns, pattern)
			}
		}
		text := pick([]string{"a", "A", "b", "B", "é", "É", "字", "\n", "\n", " ", "s", "S", "ſ", "x", "\xff", "\r\n"}, 60)
		s, err := Compile(patterns, o)
		require.NoError(t, err)
		require.Equal(t, plainly(t, patterns, o, text), found(s, text), "%d: %q in %q", seed, patterns, text)
	}
}

func BenchmarkFind(b *testing.B) {
	text := []byte(strings.Repeat("The quick brown fox jumps over the lazy dog, and so on.\n", 10_000))
	for _, patterns := range [][]string{{"absent"}, {"absent", "missing", "nowhere", "字"}, {`\bfo[a-w]\b.*z{2}`}} {
		b.Run(fmt.Sprint(len(patterns), patterns[0]), func(b *testing.B) {
			s, err := Compile(patterns, Options{Regex: true})
			require.NoError(b, err)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s.Find(text, len(text), func(Line) bool { return true })
			}
		})
	}
}
