package words_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/words"
)

func list(text string) (found []string, length int) {
	var s words.Scanner
	length = s.Each([]byte(text), func(word []byte, _ uint32) { found = append(found, string(word)) })
	return found, length
}

func TestWords(t *testing.T) {
	for _, test := range []struct {
		text, words, query string
		length             int
	}{
		{"", "", "", 0},
		{" ,.\n", "", "", 0},
		{"The quick_brown fox-trot, 3 times.", "the quick brown fox trot 3 times", "the quick brown fox trot 3 times", 7},
		{"a A a", "a a a", "a", 3},
		{"don't", "don t", "don t", 2},
		{"Café CAFÉ cafe\u0301", "cafe cafe cafe", "cafe", 3},
		{"Straße STRASSE Øre Łódź", "strasse strasse ore lodz", "strasse ore lodz", 4},
		{"ΟΔΟΣ οδός", "οδοσ οδοσ", "οδοσ", 2},
		{"Йод Ёлка елка", "йод елка елка", "йод елка", 3},
		{"ＡＢＣ１２", "abc12", "abc12", 1},
		{"हिन्दी भाषा", "हिन्दी भाषा", "हिन्दी भाषा", 2},
		{"猫", "猫", "猫", 1},
		{"黑猫", "黑 猫 黑猫", "黑猫", 2},
		{"我的黑猫。猫", "我 的 我的 黑 的黑 猫 黑猫 猫", "我的 的黑 黑猫 猫", 5},
		{"Go语言v2", "go 语 言 语言 v2", "go 语言 v2", 4},
		{"猫a猫", "猫 a 猫", "猫 a", 3},
		{"カー", "カ ー カー", "カー", 2},
		{"ｶﾀ", "カ タ カタ", "カタ", 2},
		{"が か\u3099", "が が", "が", 2},
		{"한국어", "한 국 한국 어 국어", "한국 국어", 3},
		{"a\xffb\x80", "a b", "a b", 2},
		{"𠀀𠀁", "𠀀 𠀁 𠀀𠀁", "𠀀𠀁", 2},
		{strings.Repeat("x", 50) + " y", strings.Repeat("x", 48) + " y", strings.Repeat("x", 48) + " y", 2},
		{strings.Repeat("x", 47) + "яx y", strings.Repeat("x", 47) + " y", strings.Repeat("x", 47) + " y", 2},
	} {
		t.Run(test.text, func(t *testing.T) {
			found, length := list(test.text)
			assert.Equal(t, test.words, strings.Join(found, " "))
			assert.Equal(t, test.length, length)
			var s words.Scanner
			assert.Equal(t, test.query, strings.Join(s.Query(test.text), " "))
		})
	}
}

// FuzzWords: words are valid, short and folded already, have their hash, and what a query looks for is in a text of
// the same words.
func FuzzWords(f *testing.F) {
	for _, text := range []string{"", "Café 黑猫 か\u3099x", "a\xff\xe3\x82\x99", "ﬁ ㍿ İ"} {
		f.Add(text)
		f.Add(strings.Repeat(text, 5) + "猫x" + text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s words.Scanner
		found, all := map[string]bool{}, map[string]int{}
		s.Each([]byte(text), func(word []byte, hash uint32) {
			found[string(word)] = true
			all[string(word)]++
			assert.True(t, len(word) > 0 && len(word) <= words.MaxWord && utf8.Valid(word), "%q", word)
			assert.Equal(t, words.Hash(word), hash)
		})
		length := s.Each([]byte(text), func([]byte, uint32) {})
		for _, word := range s.Query(text) {
			assert.True(t, found[word], "%q", word)
			filtered := words.Scanner{Filter: &words.Filter{}}
			filtered.Filter.Add([]byte(word))
			passed := 0
			assert.Equal(t, length, filtered.Each([]byte(text), func(other []byte, _ uint32) {
				if string(other) == word {
					passed++
				}
			}))
			assert.Equal(t, all[word], passed, "%q", word)
			again := s.Query(word)
			assert.Equal(t, []string{word}, again)
		}
	})
}

func BenchmarkEach(b *testing.B) {
	for name, text := range map[string]string{
		"English": strings.Repeat("The quick brown fox jumps over the lazy dog, and so on. ", 1000),
		"Chinese": strings.Repeat("敏捷的棕色狐狸跳过了懒狗，如此等等。", 1000),
	} {
		b.Run(name, func(b *testing.B) {
			var s words.Scanner
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s.Each([]byte(text), func([]byte, uint32) {})
			}
		})
	}
}
