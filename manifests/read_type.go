package manifests

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/manifests/internal/keypath"
)

// maxGrammar is how long a grammar may be, in bytes. It goes along with each request to a model.
const maxGrammar = 64 << 10

// The words of a custom tool's format, as OpenAI's API has them.
const (
	textFormat    = "text"
	grammarFormat = "grammar"
)

// format reads what bounds the text of a custom tool. It returns it as [tool.Definition] has it,
// or nil.
func (r *reader) format(n *node, path string) json.RawMessage {
	var kind, syntax, definition string
	read := r.object(n, path,
		field{"type", "type: and text or grammar", func(n *node, path string) { kind = r.choice(n, path, textFormat, grammarFormat) }},
		field{"syntax", "", func(n *node, path string) { syntax = r.choice(n, path, "lark", "regex") }},
		field{"definition", "", func(n *node, path string) { definition = r.grammar(n, path) }},
	)
	if !read || kind == "" {
		return nil
	}
	if kind == textFormat {
		for _, key := range [...]string{"syntax", "definition"} {
			if inner := keypath.Key(path, key); n.get(key) != nil {
				r.add(r.place(inner), inner, Conflict, "any text is allowed, so that there is no "+key, "remove it, or write type: grammar")
			}
		}
		return objectOf(keyed("type", textOf(kind))).json()
	}
	for _, key := range [...]string{"syntax", "definition"} {
		if n.get(key) == nil {
			r.add(n.at, keypath.Key(path, key), Missing, "the key "+key+" is required with type: grammar", "add syntax: lark or regex, and definition: with the grammar")
		}
	}
	return objectOf(keyed("type", textOf(kind)), keyed("syntax", textOf(syntax)), keyed("definition", textOf(definition))).json()
}

// grammar reads a grammar, whose white space counts.
func (r *reader) grammar(n *node, path string) string {
	text := r.value(n, path, maxGrammar)
	if n.kind == textNode && n.text == "" {
		r.add(n.at, path, InvalidValue, "the text is empty", "write the grammar, or type: text")
	}
	return text
}

// checkType makes sure that the parameters are what calls of the type can have.
func (r *reader) checkType(root *node, m *Manifest) {
	if format := root.get("format"); format != nil && m.Type != CustomTool && m.Type != "" {
		r.add(r.place("format"), "format", Conflict, "only the text of a custom tool has a format", "remove format, or write type: custom")
	}
	parameters := root.get("parameters")
	if parameters == nil || parameters.kind != objectNode {
		parameters = &node{kind: objectNode, at: root.at}
	}
	switch m.Type {
	case CustomTool:
		r.checkText(parameters, m)
	case LocalShellTool:
		r.checkShell(parameters, m)
	}
}

const textFix = `write parameters: {type: object, properties: {NAME: {type: string}}, required: [NAME], additionalProperties: false}, with your NAME`

// checkText makes sure that there is one text among the parameters, and nothing else, which all of
// a call can be put into.
func (r *reader) checkText(parameters *node, m *Manifest) {
	const path = "parameters"
	r.plainObject(parameters, path, textFix)
	var shown []member
	if properties := parameters.get("properties"); properties != nil {
		shown = properties.without(func(key string) bool { return slices.Contains(m.Context, key) }).members
	}
	if len(shown) != 1 {
		r.add(r.place(path), path, Conflict, fmt.Sprintf("a call of a custom tool is one text, but there are %d parameters", len(shown)), textFix)
		return
	}
	at := keypath.Key(path+".properties", shown[0].key)
	if kind := shown[0].value.get("type"); kind == nil || kind.kind != textNode || kind.text != "string" {
		r.add(shown[0].at, at, Conflict, "the text of a custom tool is a string", "write type: string for the parameter")
	}
	required := parameters.get("required")
	if !hasText(required, shown[0].key) {
		r.add(shown[0].at, at, Conflict, "the text of a custom tool is in every call", "write required: ["+shown[0].key+"]")
	}
	if required == nil {
		return
	}
	for i, n := range required.elements {
		if n.text != shown[0].key && !slices.Contains(m.Context, n.text) {
			r.add(n.at, keypath.Index(path+".required", i), Conflict, "a call of a custom tool has no other arguments", "remove it")
		}
	}
}

// plainObject reports what a schema of parameters says besides which there are: no call of the type
// may be refused for it.
func (r *reader) plainObject(schema *node, path, fix string) {
	known := []string{"type", "properties", "required", "additionalProperties", "description", "title", "$comment"}
	for _, m := range schema.members {
		inner := keypath.Key(path, m.key)
		switch {
		case !slices.Contains(known, m.key):
			r.add(m.at, inner, Conflict, m.key+" could refuse what a call of this type always is", fix)
		case m.key == "additionalProperties" && (m.value.kind != boolNode || m.value.text != "false"):
			r.add(m.at, inner, Conflict, "a call of this type has no other arguments", "write false, or remove it")
		}
	}
}

// hasText reports whether a list has a text.
func hasText(list *node, text string) bool {
	return list != nil && slices.ContainsFunc(list.elements, func(n *node) bool { return n.kind == textNode && n.text == text })
}
