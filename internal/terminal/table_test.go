package terminal

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCells(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "é": 1, "e\u0301": 1, "天気予報": 8, "ｆｕｌｌ": 8, "한글": 4, "🎉": 2, "a天b": 4} {
		assert.Equal(t, want, Cells(text), text)
	}
	assert.Equal(t, "天気…", Clip("天気予報", 6))
	assert.Equal(t, "天気予報", Clip("天気予報", 8))
	assert.Equal(t, "abc…", Clip("abcdef", 4))
}

func TestTables(t *testing.T) {
	header := []string{"NAME", "WHAT IT IS", "SOURCE", "NOTES"}
	long := strings.Repeat("n", 64)
	for name, rows := range map[string][][]string{
		"short":                {{"a", "A tool", "./tools", "read-only"}},
		"notes":                {{"a", "A tool", "./tools", strings.Repeat("many notes; ", 30)}},
		"a long name":          {{long, "A tool", "./tools", "read-only"}, {"a", "A tool", "./tools", "read-only; needs approval; also b, c, d, e, f, g"}},
		"a long source":        {{"a", "A tool", "./" + strings.Repeat("deep/", 30), "read-only"}},
		"everything is long":   {{long, strings.Repeat("Does a lot. ", 4), strings.Repeat("x", 200), "also " + strings.Repeat(long+", ", 5)}},
		"double width":         {{"weather", "天気予報を取得して表示するツール", "./ツール/天気", "read-only"}, {"a", "A", "./b", "read-only"}},
		"wide and long":        {{long, strings.Repeat("天気", 40), strings.Repeat("ツール/", 40), strings.Repeat("承認 ", 40)}},
		"nothing":              nil,
		"characters to escape": {{"a", "A\x1b[2Jtool", "./\u202etools", strings.Repeat("\n", 40)}},
	} {
		for _, most := range []int{80, 120, 60} {
			text := Fitted(append([][]string{header}, rows...), most)
			for _, line := range strings.Split(text, "\n") {
				if strings.TrimSpace(line) != long { // names are not broken
					assert.LessOrEqual(t, Cells(line), most, "%s: %s", name, text)
				}
				assert.Equal(t, strings.TrimRight(line, " "), line, name)
			}
			for _, row := range rows {
				for _, cell := range row {
					for _, word := range strings.Fields(EscapeLine(cell)) {
						if Cells(word) <= leastColumn {
							assert.Contains(t, text, word, name)
						}
					}
				}
			}
		}
	}
	assert.Equal(t, "NAME  WHAT IT IS          SOURCE   NOTES\n天    天気予報を取得する  ./tools  read-only\na     A tool              ./天     x\n",
		Fitted([][]string{header, {"天", "天気予報を取得する", "./tools", "read-only"}, {"a", "A tool", "./天", "x"}}, 80))
	assert.Equal(t, "NAME"+strings.Repeat(" ", 31)+"WHAT IT IS  SOURCE   NOTES\n"+long+"\n"+strings.Repeat(" ", 35)+"A tool      ./tools  read-only; needs\n"+strings.Repeat(" ", 56)+"approval; also another\n",
		Fitted([][]string{header, {long, "A tool", "./tools", "read-only; needs approval; also another"}}, 80))
	assert.Equal(t, "  KIND   TARGET\n  files  天\n", Aligned([][]string{{"  KIND", "TARGET"}, {"  files", "天"}}))
}
