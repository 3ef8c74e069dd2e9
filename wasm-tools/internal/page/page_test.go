package page_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/wasm-tools/internal/page"
)

var update = flag.Bool("update", false, "write the golden files")

const address = "https://www.example.com/docs/page.html?x=1"

// describe shows everything about a page, for comparison and for people.
func describe(t *testing.T, p *page.Page) string {
	t.Helper()
	about := *p
	about.Text = ""
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	require.NoError(t, encoder.Encode(about))
	return b.String() + "\n" + p.Text + "\n"
}

// TestGolden reads the pages in testdata. The expected result of each is in its golden file; -update writes them,
// and a person must review the changes.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.html")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			p, err := page.Read(page.Source{URL: address, ContentType: "text/html", Body: source}, page.Options{})
			require.NoError(t, err)
			golden := file + ".golden"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(describe(t, p)), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), describe(t, p))
		})
	}
}

func read(t *testing.T, source string, options page.Options) *page.Page {
	t.Helper()
	p, err := page.Read(page.Source{URL: address, ContentType: "text/html; charset=utf-8", Body: []byte(source)}, options)
	require.NoError(t, err)
	return p
}
