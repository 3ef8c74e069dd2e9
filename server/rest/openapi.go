package rest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// components is the document without its paths: what the routes and their schemas refer to.
//
//go:embed openapi.json
var components []byte

// openapi serves the document.
func (x *exchange) openapi() (reply, error) {
	return reply{status: http.StatusOK, body: x.api.document, counted: true}, nil
}

// document is an OpenAPI document.
type document struct {
	OpenAPI    string                          `json:"openapi"`
	Info       json.RawMessage                 `json:"info"`
	Servers    json.RawMessage                 `json:"servers"`
	Tags       json.RawMessage                 `json:"tags"`
	Paths      map[string]map[string]operation `json:"paths"`
	Components struct {
		Schemas    map[string]json.RawMessage `json:"schemas"`
		Parameters map[string]json.RawMessage `json:"parameters"`
		Responses  map[string]json.RawMessage `json:"responses"`
		Security   json.RawMessage            `json:"securitySchemes"`
	} `json:"components"`
}

// operation is one route in the document.
type operation struct {
	ID          string                `json:"operationId"`
	Tags        []string              `json:"tags"`
	Summary     string                `json:"summary"`
	Description string                `json:"description,omitempty"`
	Security    []map[string][]string `json:"security"`
	Parameters  []reference           `json:"parameters,omitempty"`
	Body        *content              `json:"requestBody,omitempty"`
	Responses   map[string]any        `json:"responses"`
}

type reference struct {
	Ref string `json:"$ref"`
}

// content is a body: of a request, or of an answer.
type content struct {
	Description string               `json:"description,omitempty"`
	Required    bool                 `json:"required,omitempty"`
	Content     map[string]mediaType `json:"content,omitempty"`
}

type mediaType struct {
	Schema any `json:"schema"`
}

// describe returns the document of routes. It fails if a route refers to what the document lacks.
func describe(routes []*route) ([]byte, error) {
	var d document
	if err := json.Unmarshal(components, &d); err != nil {
		return nil, fmt.Errorf("openapi.json: %w", err)
	}
	d.Paths = map[string]map[string]operation{}
	for _, r := range routes {
		if d.Paths[r.path] == nil {
			d.Paths[r.path] = map[string]operation{}
		}
		described, err := r.describe(&d)
		if err != nil {
			return nil, fmt.Errorf("openapi.json: %s: %w", r.id, err)
		}
		d.Paths[r.path][strings.ToLower(r.method)] = described
	}
	return json.Marshal(d)
}

// describe returns the route's operation.
func (r *route) describe(d *document) (operation, error) {
	var missing []string
	schema := func(name string) reference {
		if d.Components.Schemas[name] == nil {
			missing = append(missing, "schema "+name)
		}
		return reference{"#/components/schemas/" + name}
	}
	// The place is part of a parameter's name there: generated code has one type for each component, and a schema may
	// have the parameter's name. One that means something else in this route has the route's id, too.
	parameter := func(place, name string) reference {
		component := place + "." + name
		if own := component + "." + r.id; d.Components.Parameters[own] != nil {
			component = own
		}
		if d.Components.Parameters[component] == nil {
			missing = append(missing, "parameter "+component)
		}
		return reference{"#/components/parameters/" + component}
	}
	o := operation{ID: r.id, Tags: []string{r.tag}, Summary: r.summary, Description: r.about,
		Security: []map[string][]string{{"token": {}}}, Responses: map[string]any{}}
	if r.scope != "" {
		o.Security[0]["token"] = []string{string(r.scope)}
	}
	for _, segment := range strings.Split(r.path, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			o.Parameters = append(o.Parameters, parameter("path", strings.TrimSuffix(name, "}")))
		}
	}
	for _, name := range r.query {
		o.Parameters = append(o.Parameters, parameter("query", name))
	}
	if r.body != "" {
		o.Body = &content{Required: true, Content: map[string]mediaType{"application/json": {schema(r.body)}}}
	}
	if r.writes {
		o.Parameters = append(o.Parameters, parameter("header", keyHeader))
	}
	if r.onlyEvents {
		o.Parameters = append(o.Parameters, parameter("header", "Last-Event-ID"))
	}
	for status, name := range r.answers {
		c := content{Description: http.StatusText(status)}
		if name != "" {
			c.Content = map[string]mediaType{"application/json": {schema(name)}}
		}
		o.Responses[strconv.Itoa(status)] = c
	}
	if r.events != "" {
		o.Responses["200"] = r.streams(o.Responses["200"], schema(r.events))
	}
	for _, status := range r.refusals() {
		name := strconv.Itoa(status)
		if d.Components.Responses[name] == nil {
			missing = append(missing, "response "+name)
		}
		o.Responses[name] = reference{"#/components/responses/" + name}
	}
	if len(missing) > 0 {
		return o, fmt.Errorf("there is no %s", strings.Join(missing, ", "))
	}
	return o, nil
}

// streams adds a stream of events to an answer.
func (r *route) streams(to any, event reference) content {
	c, _ := to.(content)
	c.Description = http.StatusText(http.StatusOK)
	all := map[string]mediaType{eventStream: {map[string]any{"type": "string",
		"description": "server-sent events; the data of each is of the schema " +
			event.Ref[strings.LastIndexByte(event.Ref, '/')+1:]}}}
	maps.Copy(all, c.Content)
	c.Content = all
	return c
}

// refusals lists the statuses with which the route refuses, including those that all routes have.
func (r *route) refusals() []int {
	all := append([]int{401, 403, 429, 431, 500, 503}, r.refused...)
	if r.body != "" {
		all = append(all, 400, 413, 415)
	}
	if r.writes {
		all = append(all, 422)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
