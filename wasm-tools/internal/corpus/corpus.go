// Package corpus writes projects of documents to measure searches on: prose, notes, tables, pages and Chinese
// text, in words as frequent as those of a language.
package corpus

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// vocabulary is the number of words. Word 0 is the most frequent one.
const vocabulary = 200_000

// Rare is a phrase that each document has with a probability of 1 in 500.
const Rare = "hydraulic capacitor"

// Write writes documents of about the given number of bytes into a folder, the same ones each time, and returns
// their number.
func Write(dir string, bytes int64) (documents int, err error) {
	g := generator{random: rand.New(rand.NewPCG(1, 2))}
	g.zipf = rand.NewZipf(g.random, 1.07, 3, vocabulary-1)
	for written := int64(0); written < bytes; documents++ {
		folder := filepath.Join(dir, fmt.Sprintf("base%d", documents%10), fmt.Sprintf("part%d", documents/10%20))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return documents, err
		}
		size := int(math.Exp(8.5 + 1.6*g.random.NormFloat64())) // 5 KB in the middle, 18 KB on average
		size = min(max(size, 200), 2<<20)
		ext, write := g.kind()
		n, err := g.file(filepath.Join(folder, fmt.Sprintf("document%d.%s", documents, ext)), size, write)
		if err != nil {
			return documents, err
		}
		written += n
	}
	return documents, nil
}

type generator struct {
	random *rand.Rand
	zipf   *rand.Zipf
	out    *bufio.Writer
	size   int64
}

func (g *generator) kind() (ext string, write func()) {
	switch p := g.random.IntN(100); {
	case p < 55:
		return "md", g.markdown
	case p < 70:
		return "txt", g.paragraph
	case p < 80:
		return "csv", g.row
	case p < 90:
		return "html", g.page
	}
	return "zh.md", g.chinese
}

func (g *generator) file(name string, size int, write func()) (int64, error) {
	file, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	g.out, g.size = bufio.NewWriter(file), 0
	if strings.HasSuffix(name, ".csv") {
		g.print("number,name,place,comment\n")
	}
	rare := g.random.IntN(500) == 0
	for g.size < int64(size) {
		write()
		if rare && g.size > int64(size)/2 {
			rare = false
			g.print("The " + Rare + " is here.\n")
		}
	}
	return g.size, g.out.Flush()
}

func (g *generator) print(text string) {
	g.size += int64(len(text))
	g.out.WriteString(text) // an error stays until Flush
}

// word returns a word that says nothing, but is as long as words are.
func (g *generator) word() string {
	n := g.zipf.Uint64()
	var b strings.Builder
	const consonants, vowels = "tnsrhldcmfpgbvkwzj", "eaiou"
	for n += 20; n > 0; n /= uint64(len(consonants) * len(vowels)) {
		b.WriteByte(consonants[n%uint64(len(consonants))])
		b.WriteByte(vowels[n/uint64(len(consonants))%uint64(len(vowels))])
	}
	return b.String()
}

func (g *generator) sentence() {
	word := g.word()
	g.print(strings.ToUpper(word[:1]) + word[1:])
	for range 4 + g.random.IntN(16) {
		g.print(" " + g.word())
		if g.random.IntN(12) == 0 {
			g.print(",")
		}
	}
	g.print(". ")
}

func (g *generator) paragraph() {
	for range 2 + g.random.IntN(6) {
		g.sentence()
		if g.random.IntN(2) == 0 {
			g.print("\n")
		}
	}
	g.print("\n\n")
}

func (g *generator) markdown() {
	g.print(strings.Repeat("#", 1+g.random.IntN(4)) + " " + g.word() + " " + g.word() + "\n\n")
	for range 1 + g.random.IntN(4) {
		g.paragraph()
	}
	if g.random.IntN(4) == 0 {
		g.print("```\n" + g.word() + "(" + g.word() + ")\n```\n\n")
	}
	for range g.random.IntN(4) {
		g.print("- " + g.word() + " " + g.word() + "\n")
	}
	g.print("\n")
}

func (g *generator) row() {
	g.print(fmt.Sprintf("%d,%s,\"%s, %s\",%s %s %s\n", g.random.IntN(1_000_000), g.word(), g.word(), g.word(), g.word(),
		g.word(), g.word()))
}

func (g *generator) page() {
	g.print("<div class=\"section\"><h2>" + g.word() + "</h2>\n<p style=\"margin: 0\">")
	g.paragraph()
	g.print("</p>\n<ul><li><a href=\"/" + g.word() + ".html\">" + g.word() + "</a><li>" + g.word() +
		"</ul>\n<script>var x = 1;</script></div>\n")
}

func (g *generator) chinese() {
	for range 3 + g.random.IntN(5) {
		for range 5 + g.random.IntN(25) {
			g.print(string(rune(0x4e00 + g.zipf.Uint64()*7919%5000)))
		}
		g.print("。")
	}
	g.print("\n\n")
}
