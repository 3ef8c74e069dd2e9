package manifests_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

// TestYAMLMistakes checks where a syntax error is reported, and that the report names the mistake
// rather than the parser's state.
func TestYAMLMistakes(t *testing.T) {
	const above = "schema: caisson/v1\nname: a\n"
	for _, c := range []struct {
		source, place, message, fix string
	}{
		{above + "permissions: {", "3:14", "the { is not closed", "close it with }"},
		{above + "permissions: {\n", "3:14", "the { is not closed", "close it with }"},
		{above + "permissions: {files: [{path: /a}\n\n", "3:22", "the [ is not closed", "close it with ]"},
		{above + "description: a [text\npermissions: # {\n  files: [\n    {path: \"/]\",\n\nlimits: {}\n", "6:5", "the { is not closed", "close it with }"},
		{above + "description: |\n  [text\npermissions: {", "5:14", "the { is not closed", "close it with }"},
		{above + "module: {path: a]\n", "3:9", "the { is not closed", "close it with }"},
		{above + "module: {path: 'ä'}}\n", "3:20", "the } closes nothing", "remove it"},
		{above + "aliases: ]\n", "3:10", "the ] closes nothing", "remove it"},
		{"foo: [", "1:6", "the [ is not closed", "close it with ]"},
		{"foo: [\n", "1:6", "the [ is not closed", "close it with ]"},
		{above + "description: *foo\n", "3:14", "*foo is read as an alias", "put the text into quotes"},
		{above + "aliases: [x, *b]\n", "3:14", "*b is read as an alias", "put the text into quotes"},
		{"name: a\n description: b\n", "2:2", "the line is indented as if it belonged to the line above", "indent it like the line above"},
		{above + "module:\n  path: x\n args: [a]\n", "5:2", "the line is indented unlike every object", "indent it like the other keys"},
		{"name: a: b\n", "1:7", "the text has a colon", `put the text into quotes: "a: b"`},
		{above + "description: it's: good\n", "3:14", "the text has a colon", `put the text into quotes: "it's: good"`},
		{"schema:caisson/v1\nname: a\n", "1:7", "no space follows the colon", "write schema: caisson/v1"},
		{"schema: caisson/v1\nname:a\ndescription: b\n", "2:5", "no space follows the colon", "write name: a"},
		{"schema:caisson/v1\nname:a\n", "1:7", "no space follows the colon", "write schema: caisson/v1"},
		{above + "aliases:\n  - b\nfoo\nversion: c\n", "5:1", `there is no colon behind "foo"`, "write a key, a colon, a space and a value"},
		{above + "description: \"say \"hi\" to\"\n", "3:20", "text follows the quotes that close the value", `write \" for quotes`},
		{above + "description: @foo\n", "3:14", "no text without quotes starts with @", "put the text into quotes"},
		{above + "description: \"x\\q\"\n", "3:1", "a text in double quotes has a backslash", `write \\ for a backslash`},
		{above + "description: \"open\nversion: c\n", "", "a text in quotes is not closed", "close the quotes"},
	} {
		t.Run(c.source, func(t *testing.T) {
			_, err := manifests.Parse("tool.yaml", []byte(c.source))
			invalid, ok := errors.AsType[*manifests.Error](err)
			require.True(t, ok, "%v", err)
			require.Len(t, invalid.Problems, 1, "%v", err)
			p := invalid.Problems[0]
			if c.place != "" {
				assert.Equal(t, c.place, fmt.Sprintf("%d:%d", p.Line, p.Column))
			}
			assert.Contains(t, p.Message, "not YAML: "+c.message)
			assert.Contains(t, p.Fix, c.fix)
		})
	}
}
