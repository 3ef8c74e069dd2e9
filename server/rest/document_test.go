package rest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/server/rest"
)

// TestDocumentSuitsGenerators: the document has nothing that generators of clients are known to misread. "make
// openapi-clients" runs the generators themselves.
func TestDocumentSuitsGenerators(t *testing.T) {
	text := noerr.Get(json.Marshal(newWorld(t, rest.Options{}).doc.raw))(t)
	assert.Empty(t, faultsOf(t, text))

	for _, wrong := range []struct{ old, new, fault string }{
		{`"servers":[{`, `"unused":[{`, "no servers"},
		{`"oneOf":[`, `"properties":{},"oneOf":[`, "oneOf beside properties"},
		{`"type":["integer","null"]`, `"type":["object","null"]`, "the types [object null]"},
		{`"additionalProperties":true`, `"minProperties":0`, "an object without properties"},
		{`"Agent":{`, `"Query.Agent":{`, "several components with the name queryagent"},
		{`"Run":{`, `"Records":{`, "a property with the name of its schema"},
		{`"x-enum-varnames":["RunsInSandbox","RunsInClient","RunsInHost"]`, `"title":"x"`, "the value client has the name of a generated client"},
		{`"description":"what the tool wrote to its log; for people"`, `"contentMediaType":"text/plain"`, "text with a contentMediaType"},
		{`"400":{"$ref":"#/components/responses/400"},`, ``, "no answer 400"},
		{`"431":{"$ref":"#/components/responses/431"},`, ``, "no answer 431"},
		{`"application/problem+json":{"schema"`, `"application/json":{"schema"`, "is no problem"},
	} {
		require.Contains(t, string(text), wrong.old)
		assert.Contains(t, strings.Join(faultsOf(t, []byte(strings.Replace(string(text), wrong.old, wrong.new, 1))), "\n"), wrong.fault, wrong.old)
	}
}

// TestComponentsAreNamedOnce: a second component with a name would replace the first.
func TestComponentsAreNamedOnce(t *testing.T) {
	text := string(noerr.Get(os.ReadFile("openapi.json"))(t))
	read := func(text string) error { return noerr.Error(jsontext.Parse(text, jsontext.Limits{Values: 1 << 20})) }
	require.NoError(t, read(text))
	require.ErrorIs(t, read(strings.Replace(text, `"query.to"`, `"query.from"`, 1)), jsontext.ErrRepeated, "the control")
}

// faultsOf returns what generators of clients would misread in a document.
func faultsOf(t *testing.T, text []byte) (faults []string) {
	t.Helper()
	var d struct {
		Servers    []struct{ URL string }
		Paths      map[string]map[string]operation
		Components map[string]map[string]map[string]any
	}
	require.NoError(t, json.Unmarshal(text, &d))
	found := func(format string, arguments ...any) { faults = append(faults, fmt.Sprintf(format, arguments...)) }
	if len(d.Servers) == 0 {
		found("no servers")
	}
	names := map[string]bool{}
	for _, kind := range []string{"schemas", "parameters", "responses"} {
		for name, component := range d.Components[kind] {
			if names[plain(name)] {
				found("%s: several components with the name %s", name, plain(name))
			}
			names[plain(name)] = true
			if properties, ok := component["properties"].(map[string]any); ok {
				for property := range properties {
					if plain(property) == plain(name) {
						found("%s: a property with the name of its schema", name)
					}
				}
			}
			eachSchema(component, func(schema map[string]any) { faults = append(faults, misread(name, schema)...) })
		}
	}
	for status, response := range d.Components["responses"] {
		if content, _ := response["content"].(map[string]any); content["application/problem+json"] == nil {
			found("%s is no problem", status)
		}
	}
	for path, methods := range d.Paths {
		for method, o := range methods {
			want := []string{"401", "403", "429", "431", "500", "503"}
			if o.Body != nil {
				want = append(want, "400", "413", "415")
			}
			for _, p := range o.Parameters {
				if strings.HasPrefix(p.Ref, "#/components/parameters/query.") {
					want = append(want, "400")
				}
			}
			for _, status := range want {
				if o.Responses[status].Ref == "" {
					found("%s %s: no answer %s", method, path, status)
				}
			}
		}
	}
	return faults
}

// misread returns what generators misread in one schema, without those in it.
func misread(name string, schema map[string]any) (faults []string) {
	for _, word := range []string{"oneOf", "anyOf", "allOf"} {
		if schema[word] != nil && schema["properties"] != nil {
			faults = append(faults, fmt.Sprintf("%s: %s beside properties", name, word))
		}
	}
	if types, ok := schema["type"].([]any); ok && (len(types) != 2 || types[1] != "null" || types[0] == "object" || types[0] == "array") {
		faults = append(faults, fmt.Sprintf("%s: the types %v", name, types))
	}
	if schema["type"] == "object" && schema["properties"] == nil && schema["additionalProperties"] == nil {
		faults = append(faults, name+": an object without properties")
	}
	if schema["contentMediaType"] != nil {
		faults = append(faults, name+": text with a contentMediaType")
	}
	if values, ok := schema["enum"].([]any); ok && slices.Contains(values, any("client")) && schema["x-enum-varnames"] == nil {
		faults = append(faults, name+": the value client has the name of a generated client")
	}
	return faults
}

// eachSchema visits a schema and those in it.
func eachSchema(v any, visit func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		visit(v)
		for _, member := range v {
			eachSchema(member, visit)
		}
	case []any:
		for _, element := range v {
			eachSchema(element, visit)
		}
	}
}

// plain returns a name without what generators change in it: case and punctuation.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("._-", r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
}
