package tool_test

import (
	"strings"
	"testing"

	"github.com/caisson-run/caisson/tool"
)

// BenchmarkParseArguments reads usual and long arguments, as each call of a tool does.
func BenchmarkParseArguments(b *testing.B) {
	short := `{"path":"/project/main.go","from":1,"to":200,"find":["a \"b\"","c"],"options":{"case":true,"limit":null}}`
	for name, text := range map[string]string{"short": short, "long": `{"edits":[` + strings.Repeat(short+",", 5000) + short + "]}"} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tool.ParseArguments(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
