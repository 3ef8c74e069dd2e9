package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/schema"
)

// Why a schema of the official test suite is refused by design.
const (
	elsewhere  = "it refers to a schema that is not part of it, and schemas of tools must not make the host load anything"
	metaSchema = "it refers to the meta-schema of its draft, which is not part of it either: nothing that a provider or a model gets has it"
	vocabulary = "it brings a vocabulary, which would change what keywords mean"
)

// refusedOfSuite are the schemas of the official test suite that are refused by design, by file and description.
var refusedOfSuite = map[string]map[string]string{
	"defs.json":        {"validate definition against metaschema": metaSchema},
	"definitions.json": {"validate definition against metaschema": metaSchema},
	"ref.json":         {"remote ref, containing refs itself": metaSchema},
	"dynamicRef.json": {
		"strict-tree schema, guards against misspelled properties":       elsewhere,
		"tests for implementation dynamic anchor and reference link":     elsewhere,
		"$ref and $dynamicAnchor are independent of order - $defs first": elsewhere,
		"$ref and $dynamicAnchor are independent of order - $ref first":  elsewhere,
		"$ref to $dynamicRef finds detached $dynamicAnchor":              elsewhere,
	},
	"refRemote.json": {"": elsewhere}, // all in the file
	"vocabulary.json": {
		"schema that uses custom metaschema with with no validation vocabulary": vocabulary,
		"ignore unrecognized optional vocabulary":                               vocabulary,
	},
}

// TestOfficialSuite: a schema of the official test suite accepts and rejects the values that the suite says,
// unless it is refused by design.
func TestOfficialSuite(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/jsonschema-go").Output()
	require.NoError(t, err)
	module := filepath.Join(strings.TrimSpace(string(out)), "jsonschema", "testdata")
	for _, suite := range []struct {
		folder, draft   string
		schemas, refuse int // at least, and exactly
	}{
		{filepath.Join("testdata", "suite", "draft6"), "http://json-schema.org/draft-06/schema#", 30, 1},
		{filepath.Join(module, "draft7"), "http://json-schema.org/draft-07/schema#", 240, 13},
		{filepath.Join("testdata", "suite", "draft2019-09"), "https://json-schema.org/draft/2019-09/schema", 45, 1},
		{filepath.Join(module, "draft2020-12"), "https://json-schema.org/draft/2020-12/schema", 340, 22},
	} {
		t.Run(filepath.Base(suite.folder), func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join(suite.folder, "*.json"))
			require.NoError(t, err)
			schemas, refused := 0, 0
			for _, file := range files {
				for _, c := range casesIn(t, file) {
					schemas++
					if runCase(t, filepath.Base(file), suite.draft, c) {
						refused++
					}
				}
			}
			assert.GreaterOrEqual(t, schemas, suite.schemas)
			assert.Equal(t, suite.refuse, refused)
		})
	}
}

// suiteCase is a schema of the suite, with values.
type suiteCase struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

func casesIn(t *testing.T, file string) (cases []suiteCase) {
	t.Helper()
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(source, &cases), file)
	return cases
}

// runCase returns whether a schema is refused, which it has to be by design.
func runCase(t *testing.T, file, draft string, c suiteCase) (refused bool) {
	t.Helper()
	source := bytes.TrimSpace(c.Schema)
	if source[0] == '{' && !bytes.Contains(source, []byte(`"$schema"`)) { // the folder says which draft it is
		rest := bytes.TrimSpace(source[1:])
		if rest[0] != '}' {
			rest = append([]byte(","), rest...)
		}
		source = append(fmt.Appendf(nil, `{"$schema":%q`, draft), rest...)
	}
	compiled, err := schema.Compile(source)
	reason := refusedOfSuite[file][c.Description] + refusedOfSuite[file][""]
	switch {
	case err != nil:
		assert.NotEmpty(t, reason, "%s: %s: %v", file, c.Description, err)
		return true
	case reason != "" && file != "refRemote.json":
		t.Errorf("%s: %s is listed as refused: %s", file, c.Description, reason)
	}
	flat, err := schema.Flatten(source)
	require.NoError(t, err)
	flattened, err := schema.Compile(flat)
	require.NoError(t, err, "%s: %s:\n%s\n%s", file, c.Description, source, flat)
	for _, test := range c.Tests {
		for name, s := range map[string]*schema.Schema{"as written": compiled, "flat": flattened} {
			assert.Equal(t, test.Valid, s.Validate(t.Context(), test.Data) == nil, "%s: %s: %s, %s\n%s", file, c.Description, test.Description, name, s.JSON())
		}
	}
	return false
}
