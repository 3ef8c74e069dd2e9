package exact

import (
	"strings"
	"testing"
)

// BenchmarkUnmarshal reads a short and a long response of a provider.
func BenchmarkUnmarshal(b *testing.B) {
	call := `{"name":"a","raw":{"path":"/project/main.go","text":"` + strings.Repeat(`package main\n`, 20) + `","from":1}}`
	for name, text := range map[string]string{
		"short": `{"tool_calls":[` + call + `],"size":"b","stranger":[1,2,3]}`,
		"long":  `{"tool_calls":[` + strings.Repeat(call+",", 999) + call + `],"size":"b"}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if err := Unmarshal([]byte(text), new(outer)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
