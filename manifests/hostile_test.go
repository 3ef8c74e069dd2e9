package manifests_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/manifests"
)

// TestHostileDocuments reads documents of the largest size that cost readers much.
func TestHostileDocuments(t *testing.T) {
	fill := func(text string) string { return strings.Repeat(text, (manifests.MaxBytes-2000)/len(text)) }
	list := func(element string) string { return strings.TrimSuffix(fill(element+","), ",") }
	deep := strings.Repeat("{"+strings.Repeat("k", 9_000)+": ", 70) + "[" + strings.Repeat("1,", 50_000) + "1]" + strings.Repeat("}", 70)
	laughs := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'z'; c++ {
		laughs += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	documents := map[string]struct{ file, source string }{
		"open lists":              {"tool.yaml", fill("[")},
		"open lists in JSON":      {"tool.json", fill("[")},
		"nested lists in JSON":    {"tool.json", strings.Repeat("[", 1000) + strings.Repeat("]", 1000)},
		"question marks":          {"tool.yaml", fill("?\n")},
		"anchors":                 {"tool.yaml", "a: [" + fill("&a 1,") + "]"},
		"many aliases":            {"tool.yaml", laughs},
		"one key, often":          {"tool.yaml", fill("a: b\n")},
		"one key, often, in JSON": {"tool.json", "{" + list(`"a":1`) + "}"},
		"one long line":           {"tool.json", `{"tests":[` + list("{}") + "]}"},
		"one long list":           {"tool.yaml", "tests: [" + list("{}") + "]"},
		"a large enum":            {"tool.yaml", "parameters: {enum: [" + list("1") + "]}"},
		"long keys, nested":       {"tool.yaml", deep},
		"long keys in JSON":       {"tool.json", strings.NewReplacer("{k", `{"k`, "k:", `k":`).Replace(deep)},
		"indentation":             {"tool.yaml", fill("a:\n ")},
	}
	for _, name := range testsize.Sample(slices.Sorted(maps.Keys(documents)), 4) {
		c := documents[name]
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := manifests.Parse(c.file, []byte(c.source))
			var invalid *manifests.Error
			require.ErrorAs(t, err, &invalid)
			assert.LessOrEqual(t, len(invalid.Problems), 1000)
			assert.Less(t, time.Since(start), time.Minute)
		})
	}
	_, err := manifests.Parse("tool.yaml", []byte(fill("x")+fill("x")))
	require.ErrorIs(t, err, manifests.ErrInvalid)
	assert.ErrorContains(t, err, "over the limit")
}

// TestHostilePolicies reads policies of the largest size that cost readers much.
func TestHostilePolicies(t *testing.T) {
	lines := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < manifests.MaxBytes-1000; i++ {
			fmt.Fprintf(&b, format, i, i+1)
		}
		return b.String()
	}
	policies := map[string]string{
		"many profiles":  "profiles:\n" + lines("  p%d: {extends: p%d}\n"),
		"many variables": "grants:\n- tools: [a]\n  env:\n" + lines("    A%d: a%d\n"),
		"many files":     "grants:\n- tools: [a]\n  files:\n" + lines("  - {path: /a%d, host: a%d}\n"),
		"many grants":    "grants:\n" + lines("- {tools: [a%d], context: [a%d]}\n"),
		"many denials":   "deny:\n" + lines("- {tools: [a%d], env: A%d}\n"),
		"many sources":   "tools:\n" + lines("- {path: a%d, paht: a%d}\n"),
		"empty grants":   "grants: [" + strings.Repeat("{}, ", 200_000) + "{}]",
	}
	for _, name := range testsize.Sample(slices.Sorted(maps.Keys(policies)), 3) {
		body := policies[name]
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := manifests.ParsePolicy("caisson.yaml", []byte("schema: caisson-config/v1\n"+body))
			var invalid *manifests.Error
			require.ErrorAs(t, err, &invalid)
			assert.LessOrEqual(t, len(invalid.Problems), 1000)
			assert.Less(t, time.Since(start), time.Minute)
		})
	}
}

// TestTheLargestPolicy is one that takes every list to its end, and holds.
func TestTheLargestPolicy(t *testing.T) {
	var b strings.Builder
	b.WriteString("schema: caisson-config/v1\ngrants:\n")
	for i := range 4096 {
		fmt.Fprintf(&b, "- {tools: [\"[a-b]*_%d\"], network: [{host: h%d.example}]}\n", i, i)
	}
	p := must(manifests.ParsePolicy("caisson.yaml", []byte(b.String())))
	start := time.Now()
	require.Len(t, p.For("a_4095", "").Network, 1)
	assert.Less(t, time.Since(start), 10*time.Second)
}
