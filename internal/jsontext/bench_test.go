package jsontext_test

import (
	"strings"
	"testing"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// BenchmarkParse reads texts as long as a tool's usual and longest arguments.
func BenchmarkParse(b *testing.B) {
	short := `{"path":"/project/main.go","from":1,"to":200,"find":["a \"b\"","c"],"options":{"case":true,"limit":null}}`
	for name, text := range map[string]string{"short": short, "long": "[" + strings.Repeat(short+",", 5000) + short + "]"} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := jsontext.Parse(text, jsontext.Limits{Values: len(text) + 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
