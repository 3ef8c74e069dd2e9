package tools_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// BenchmarkStart is a call that fails before it sends a request. It measures the fixed cost of each call.
func BenchmarkStart(b *testing.B) {
	c := load(b, "fetch_page", manifests.Grants{})
	for b.Loop() {
		require.Equal(b, tool.ToolFailed, c.call(`{"url":"nothing"}`).Result.Kind)
	}
}

// BenchmarkPages fetches pages from a server in this process, through all layers of a call. One page is
// like those that people write, and the other pages, of five megabytes, are made to take time and memory;
// the call's own linear memory is reported.
func BenchmarkPages(b *testing.B) {
	const size = 5 << 20
	for _, bench := range []struct{ name, start, piece string }{
		{"small", "<title>Small</title>" + strings.Repeat("<p>A page as people <a href=/x>write</a> them.", 200), ""},
		{"text", "", "lorem ipsum "},
		{"paragraphs_in_formatting", strings.Repeat("<b a=1><i b=2>", 200), "<p>"},
		{"rows", "<table>", "<tr><td>a<td>b"},
		{"links", "", "<a href=/x>x</a>"},
		{"long_base", "<base href=/" + strings.Repeat("b", 2000) + "/>", "<a href=x>"},
		{"headings", "", "<h1>"},
		{"many_attributes", "", "<p a b c d e f g h i j k l m n o p>"},
		{"one_comment", "<!--", "--"},
		{"invalid_UTF-8", "", "\xff"},
		{"entities", "", "&CounterClockwiseContourIntegral;"},
	} {
		body := bench.start
		if bench.piece != "" {
			body += strings.Repeat(bench.piece, (size-len(bench.start))/len(bench.piece))
		}
		b.Run(bench.name, func(b *testing.B) {
			server := serve(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { page(w, body) }), "www.example.com")
			c := load(b, "fetch_page", manifests.Grants{Network: []manifests.NetworkGrant{server.grant("www.example.com", "GET")}})
			var memory int64
			for b.Loop() {
				record := c.call(`{"url":"https://www.example.com/"}`)
				require.True(b, record.Result.Success, record.Result.Error)
				memory = max(memory, record.Usage.MemoryBytes)
			}
			b.ReportMetric(float64(memory)/(1<<20), "MiB/call")
		})
	}
}
