package rest_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/server/rest"
)

// contract is the document that the server serves, which all answers of all tests have to keep.
type contract struct {
	paths map[string]map[string]operation
	raw   map[string]any
	// schemas are those of the document, with all objects closed: the server sends nothing that the document does not
	// have.
	schemas map[string]*schema.Schema
}

type operation struct {
	ID         string `json:"operationId"`
	Security   []map[string][]string
	Parameters []struct {
		Ref string `json:"$ref"`
	}
	Body *struct {
		Content map[string]struct {
			Schema struct {
				Ref string `json:"$ref"`
			}
		}
	} `json:"requestBody"`
	Responses map[string]struct {
		Ref     string `json:"$ref"`
		Content map[string]struct{ Schema map[string]any }
	}
}

// contracts are those that were read before, by their text: compiling the schemas of one takes longer than most tests.
var contracts sync.Map

func readContract(t *testing.T, text []byte) *contract {
	t.Helper()
	if known, ok := contracts.Load(string(text)); ok {
		return known.(*contract)
	}
	var shape struct {
		OpenAPI string
		Paths   map[string]map[string]operation
	}
	require.NoError(t, json.Unmarshal(text, &shape))
	require.Equal(t, "3.1.0", shape.OpenAPI)
	c := &contract{paths: shape.Paths, schemas: map[string]*schema.Schema{}}
	require.NoError(t, json.Unmarshal(text, &c.raw))
	definitions := closed(c.raw["components"].(map[string]any)["schemas"]).(map[string]any)
	for name := range definitions {
		whole, err := json.Marshal(map[string]any{"$ref": "#/components/schemas/" + name, "$defs": definitions})
		require.NoError(t, err)
		c.schemas[name], err = schema.Compile(bytes.ReplaceAll(whole, []byte("#/components/schemas/"), []byte("#/$defs/")))
		require.NoError(t, err, name)
	}
	contracts.Store(string(text), c)
	return c
}

// closed returns a schema in which objects with properties have no others.
func closed(v any) any {
	switch v := v.(type) {
	case map[string]any:
		changed := map[string]any{}
		for name, member := range v {
			changed[name] = closed(member)
		}
		_, said := v["additionalProperties"]
		_, isSchema := v["properties"].(map[string]any)
		if v["type"] == "object" && isSchema && !said {
			changed["additionalProperties"] = false
		}
		return changed
	case []any:
		var changed []any
		for _, element := range v {
			changed = append(changed, closed(element))
		}
		return changed
	}
	return v
}

// fits requires a document to be of a schema.
func (c *contract) fits(t *testing.T, name string, document []byte) {
	t.Helper()
	require.NotNil(t, c.schemas[name], name)
	assert.NoError(t, c.schemas[name].Validate(t.Context(), document), "%s: %s", name, document)
}

// operation returns the operation that serves a path, and whether the document has the path.
func (c *contract) operation(method, path string) (o operation, found, known bool) {
	path, _, _ = strings.Cut(path, "?")
	for pattern, methods := range c.paths {
		expression := "^" + regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(pattern, "[^/]+") + "$"
		if regexp.MustCompile(expression).MatchString(path) {
			o, found = methods[strings.ToLower(method)]
			return o, found, true
		}
	}
	return o, false, false
}

// check requires an answer to be one of those that the document has.
func (c *contract) check(t *testing.T, method, path string, a answered) {
	t.Helper()
	o, found, known := c.operation(method, path)
	if !found {
		want := http.StatusNotFound
		if known {
			want = http.StatusMethodNotAllowed
		}
		assert.Equal(t, want, a.status, "%s %s is not in the document", method, path)
		c.fits(t, "Problem", a.body)
		return
	}
	said, ok := o.Responses[strconv.Itoa(a.status)]
	if !assert.True(t, ok, "%s answers with %d, which is not in the document: %s", o.ID, a.status, a.body) {
		return
	}
	media := strings.Split(a.header.Get("Content-Type"), ";")[0]
	switch {
	case said.Ref != "":
		assert.Equal(t, "application/problem+json", media, o.ID)
		c.fits(t, "Problem", a.body)
	case len(said.Content) == 0:
		assert.Empty(t, a.body, o.ID)
	case media == "text/event-stream":
		assert.Contains(t, said.Content, media, o.ID)
	default:
		ref, _ := said.Content[media].Schema["$ref"].(string)
		c.fits(t, strings.TrimPrefix(ref, "#/components/schemas/"), a.body)
	}
}

// checkBody requires that a body is refused as malformed if it is not of the document's schema, and not if it is.
func (c *contract) checkBody(t *testing.T, method, path string, body any, a answered) {
	t.Helper()
	o, _, _ := c.operation(method, path)
	if o.Body == nil || body == nil || a.status == http.StatusUnsupportedMediaType || a.status == http.StatusRequestEntityTooLarge {
		return
	}
	text, isText := body.(string)
	if !isText {
		marshalled := noerr.Get(json.Marshal(body))(t)
		text = string(marshalled)
	}
	ref := o.Body.Content["application/json"].Schema.Ref
	err := c.schemas[strings.TrimPrefix(ref, "#/components/schemas/")].Validate(t.Context(), []byte(text))
	if err == nil {
		assert.False(t, a.status == http.StatusBadRequest && !strings.Contains(string(a.body), "Idempotency-Key"), "%s is of the schema, and is refused: %s", text, a.body)
	} else {
		assert.GreaterOrEqual(t, a.status, 400, "%s is not of the schema, and is accepted: %s", text, err)
	}
}

// TestDocumentAndRoutesAgree: each operation of the document is served, and no path serves a method that the document
// does not have.
func TestDocumentAndRoutesAgree(t *testing.T) {
	w := newWorld(t, rest.Options{})
	require.Greater(t, len(w.doc.paths), 10)
	ids := map[string]bool{}
	for path, methods := range w.doc.paths {
		at := regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(path, "none")
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
			o, documented := methods[strings.ToLower(method)]
			a := w.request(method, at, "", nil)
			if !documented {
				a.refused(http.StatusMethodNotAllowed)
				assert.NotContains(t, a.header.Get("Allow"), method)
				continue
			}
			assert.False(t, ids[o.ID], o.ID)
			ids[o.ID] = true
			if len(o.Security[0]["token"]) > 0 {
				a.refused(http.StatusUnauthorized)
				assert.Equal(t, "Bearer", a.header.Get("WWW-Authenticate"))
			} else {
				assert.Equal(t, http.StatusOK, a.status)
			}
		}
	}
	w.request("GET", "/v1/nothing", "ada", nil).refused(http.StatusNotFound)
	w.request("GET", "/", "ada", nil).refused(http.StatusNotFound)
}

// TestReferencesLead: everything that the document refers to is in it, and everything in it is referred to.
func TestReferencesLead(t *testing.T) {
	w := newWorld(t, rest.Options{})
	referred := map[string]bool{"schemas/Result": true} // it is in the text of records
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				referred[strings.TrimPrefix(ref, "#/components/")] = true
			}
			for _, member := range v {
				walk(member)
			}
		case []any:
			for _, element := range v {
				walk(element)
			}
		}
	}
	walk(w.doc.raw)
	for _, name := range []string{"Event"} { // of streams, which name their schema in words
		referred["schemas/"+name] = true
	}
	referred["schemas/ResponsesEvent"] = true
	have := map[string]bool{}
	for kind, all := range w.doc.raw["components"].(map[string]any) {
		if kind == "securitySchemes" {
			continue
		}
		for name := range all.(map[string]any) {
			have[kind+"/"+name] = true
		}
	}
	assert.Equal(t, slices.Sorted(maps.Keys(have)), slices.Sorted(maps.Keys(referred)))
}

// TestStatusesAreExplained: the page about the API explains each status.
func TestStatusesAreExplained(t *testing.T) {
	page := noerr.Get(os.ReadFile(filepath.Join("..", "..", "docs", "http.md")))(t)
	_, table, found := strings.Cut(string(page), "| status | when |")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	statuses := map[string]bool{"405": true}
	for _, methods := range newWorld(t, rest.Options{}).doc.paths {
		for _, o := range methods {
			for status := range o.Responses {
				statuses[status] = true
			}
		}
	}
	for status := range statuses {
		assert.Regexp(t, `(?m)^\|[^|]*\b`+status+`\b[^|]*\|`, table)
	}
}

// TestScopes: each route is served to exactly those who have its scope.
func TestScopes(t *testing.T) {
	w := newWorld(t, rest.Options{})
	for path, methods := range w.doc.paths {
		at := regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(path, "none")
		for method, o := range methods {
			if len(o.Security[0]["token"]) == 0 {
				continue
			}
			scope := o.Security[0]["token"][0]
			for name, caller := range callers {
				has := false
				for _, s := range caller.Scopes {
					has = has || string(s) == scope
				}
				a := w.request(strings.ToUpper(method), at, name, nil)
				lacks := a.status == http.StatusForbidden && strings.Contains(string(a.body), "lacks the scope "+scope)
				assert.Equal(t, !has, lacks, "%s as %s: %d %s", o.ID, name, a.status, a.body)
			}
		}
	}
}
