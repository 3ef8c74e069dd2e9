package dialects_test

import (
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
)

func TestErrorSaysWhereAndWhy(t *testing.T) {
	cause := errors.New("cause")
	for want, err := range map[string]*dialects.Error{
		"openai response: choices[0]: wrong: cause": {Op: "response", Dialect: "openai", Path: "choices[0]", Message: "wrong", Err: cause},
		"events: wrong":        {Op: "events", Message: "wrong"},
		"gemini stream: cause": {Op: "stream", Dialect: "gemini", Err: cause},
	} {
		assert.Equal(t, want, err.Error())
		assert.Equal(t, err.Err != nil, errors.Is(err, cause))
	}
}

func TestDetect(t *testing.T) {
	for _, c := range []struct{ document, want string }{
		{`{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"x"}}]}`, dialects.OpenAI},
		{` {"choices":[]}`, dialects.OpenAI},
		{`{"id":"r","object":"response","status":"completed","output":[]}`, dialects.Responses},
		{`{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn"}`, dialects.Anthropic},
		{`{"candidates":[{"content":{"parts":[{"text":"x"}],"role":"model"}}]}`, dialects.Gemini},
		{`{"promptFeedback":{"blockReason":"SAFETY"}}`, dialects.Gemini},
		{` [ {"candidates":[]},{}]`, dialects.Gemini},
		{`[{"jsonrpc":"2.0","id":1,"method":"tools/call"}]`, dialects.MCP},
		{"\uFEFF\r\n{\"choices\":[]}", dialects.OpenAI},
		{`{"choices":[],"Candidates":[],"JSONRPC":"2.0"}`, dialects.OpenAI},
		{`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`, dialects.MCP},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`, dialects.MCP},

		{``, ""}, {` `, ""}, {`null`, ""}, {`"choices"`, ""}, {`[]`, ""}, {`[`, ""}, {`[[{"choices":[]}]]`, ""}, {`[{"choices":[]}`, ""},
		{`{}`, ""}, {`{"choices":{}}`, ""}, {`{"choices":[]`, ""}, {`{"choices":[]} {}`, ""}, {`{"jsonrpc":"1.0"}`, ""},
		{`{"type":"message","role":"user","content":[]}`, ""},
		{`{"error":{"message":"x","type":"invalid_request_error"}}`, ""},
		{`{"choices":[],"candidates":[]}`, ""},
		{`[{"choices":[]}]`, ""}, {`[{"object":"response","output":[]}]`, ""}, {`[{"type":"message","role":"assistant","content":[]}]`, ""},
		{`{"Choices":[]}`, ""}, {`{"choices":[],"choices":[]}`, ""},
		{`{"choices":[` + strings.Repeat(" ", dialects.MaxDocument) + `]}`, ""},
	} {
		name, ok := dialects.Detect([]byte(c.document))
		assert.Equal(t, c.want, name, "%.100s", c.document)
		assert.Equal(t, c.want != "", ok, "%.100s", c.document)
	}
}

func FuzzDetect(f *testing.F) {
	f.Add([]byte(`[{"candidates":[{"content":{}}],"promptFeedback":null}]`))
	f.Add([]byte(`{"object":"response","output":[],"type":"message","role":"assistant","content":[]}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		name, ok := dialects.Detect(document)
		if ok {
			require.Contains(t, dialects.Names(), name)
		} else {
			require.Empty(t, name)
		}
	})
}

// TestRowS2_7DependsOnTheStandardLibrary reads the imports of this package and of those below it.
func TestRowS2_7DependsOnTheStandardLibrary(t *testing.T) {
	const module = "github.com/caisson-run/caisson/"
	read := 0
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range syntax.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			first, _, _ := strings.Cut(imported, "/")
			own, within := strings.CutPrefix(imported, module)
			if within {
				assert.True(t, own == "tool" || own == "dialects" || strings.HasPrefix(own, "dialects/"), "%s imports %s", name, imported)
			} else {
				assert.NotContains(t, first, ".", "%s imports %s", name, imported)
			}
			read++
		}
		return nil
	})
	require.NoError(t, err)
	assert.Greater(t, read, 20, "the imports must be found")
}
