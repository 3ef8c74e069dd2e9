package rest

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// offered are the tools of a request to a model, as its "tools" lists them.
type offered struct {
	// client are those that the client runs: functions and custom tools of which there is none here with the name.
	client []tool.Definition
	// settings are definitions with settings for tools that there are here, by name: {"type":"web_search", …}.
	settings map[string]json.RawMessage
}

// take reads one tool, in the form of the Responses API or of chat completions. Tools of the provider's own, which have
// no namesake here, are left to it.
func (o *offered) take(tools *registry.Registry) decode.Reader {
	return func(v jsontext.Value) error {
		if v.Kind() != jsontext.Object {
			return decode.Wrong(v, "must be an object")
		}
		kind := v.Get("type").String()
		if kind != tool.FunctionCall && kind != tool.CustomCall {
			if entry, ok := tools.Get(kind); ok {
				if o.settings == nil {
					o.settings = map[string]json.RawMessage{}
				}
				o.settings[entry.Name] = json.RawMessage(v.Text())
			}
			return nil
		}
		described := v
		if inner := v.Get(kind); inner.Kind() == jsontext.Object { // chat completions
			described = inner
		}
		d, err := broughtTool(described, kind)
		if err != nil {
			return err
		}
		if _, ok := tools.Get(d.Name); ok {
			return nil // the first that has a name keeps it
		}
		o.client = append(o.client, d)
		return nil
	}
}

// broughtTool reads a function or a custom tool. Like a model's response, it is a document in a provider's form, which
// the OpenAPI document does not describe. What a provider adds to its own format is left to it, and what decides how
// calls are checked must be of the right type: a schema that is ignored would check nothing.
func broughtTool(v jsontext.Value, kind string) (tool.Definition, error) {
	d := tool.Definition{Type: kind}
	for name, to := range map[string]*string{"name": &d.Name, "description": &d.Description} {
		switch given := v.Get(name); given.Kind() {
		case jsontext.String:
			*to = strings.Clone(given.String())
		case absent, jsontext.Null:
		default:
			return d, refuseValue(http.StatusUnprocessableEntity, given.Path(), "must be a string")
		}
	}
	for name, to := range map[string]*json.RawMessage{"parameters": &d.Parameters, "format": &d.Format} {
		switch given := v.Get(name); given.Kind() {
		case jsontext.Object:
			*to = json.RawMessage(given.Text())
		case absent, jsontext.Null:
		default:
			return d, refuseValue(http.StatusUnprocessableEntity, given.Path(), "must be an object")
		}
	}
	if d.Name == "" {
		return d, refuseValue(http.StatusUnprocessableEntity, v.Path(), "has no name")
	}
	return d, nil
}

// absent is the kind of a member that an object does not have.
const absent jsontext.Kind = 0

// addTo adds the settings to what a request says to tools, unless it says more itself.
func (o *offered) addTo(requests *map[string]tool.Request) {
	for name, definition := range o.settings {
		if *requests == nil {
			*requests = map[string]tool.Request{}
		}
		said := (*requests)[name]
		if said.Definition == nil {
			said.Definition = definition
		}
		(*requests)[name] = said
	}
}

// postDefinitions writes the tools of the host together with those that the client brings.
func (x *exchange) postDefinitions() (reply, error) {
	var name, agent string
	var strict bool
	var brings offered
	err := x.decode(decode.Members{
		"dialect": decode.Text(&name), "strict": decode.Bool(&strict),
		"agent": func(v jsontext.Value) error {
			if v.Kind() == jsontext.String && v.String() == "" {
				return decode.Wrong(v, noAgent)
			}
			return decode.Text(&agent)(v)
		},
		"tools": decode.Elements(maxCalls, brings.take(x.api.host.Registry())),
	})
	if err != nil {
		return reply{}, err
	}
	dialect, err := dialectNamed(name, http.StatusBadRequest)
	if err != nil {
		return reply{}, err
	}
	return x.definitions(dialect, strict, agent, brings.client)
}
