package schema

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// nodeReader makes nodes of a vetted schema.
type nodeReader struct {
	draft      draft
	nodes      map[string]*Node // by JSON pointer
	anchors    map[string]*Node // by reference: #name
	references []nodeReference
}

type nodeReference struct {
	from   *Node
	target string
}

// schema makes the node of a schema and of all schemas inside it: references may lead to
// those that nothing else applies.
func (r *nodeReader) schema(value any, pointer string) *Node {
	n := &Node{pointer: pointer, Types: AnyType}
	r.nodes[pointer] = n
	if value == false {
		n.Types = 0
	}
	keywords, _ := value.(map[string]any)
	for _, keyword := range keys(keywords) {
		r.keyword(n, keyword, keywords[keyword], pointer+"/"+escapePointer(keyword))
	}
	r.items(n, keywords)
	if target, refers := keywords["$ref"].(string); refers {
		if r.draft < draft2019 {
			*n = Node{pointer: pointer, Types: AnyType} // nothing beside $ref counts
		}
		r.references = append(r.references, nodeReference{n, target})
	}
	return n
}

func (r *nodeReader) keyword(n *Node, keyword string, value any, pointer string) {
	switch kindOf(keyword) {
	case oneSchema:
		if list, isList := value.([]any); isList {
			r.list(list, pointer)
			return
		}
		inner := r.schema(value, pointer)
		if keyword == "additionalProperties" {
			n.Additional = inner
		}
	case schemaList:
		list, _ := value.([]any)
		r.applyList(n, keyword, r.list(list, pointer))
	case schemaMap:
		r.named(n, keyword, value, pointer)
	default:
		r.value(n, keyword, value)
	}
}

func (r *nodeReader) list(list []any, pointer string) []*Node {
	nodes := make([]*Node, len(list))
	for i, element := range list {
		nodes[i] = r.schema(element, pointer+"/"+strconv.Itoa(i))
	}
	return nodes
}

func (r *nodeReader) applyList(n *Node, keyword string, nodes []*Node) {
	switch keyword {
	case "allOf":
		n.Also = append(n.Also, nodes...)
	case "anyOf", "oneOf":
		n.Unions = append(n.Unions, Union{keyword == "oneOf", nodes})
	}
}

func (r *nodeReader) named(n *Node, keyword string, value any, pointer string) {
	named := map[string]*Node{}
	elements, _ := value.(map[string]any)
	for _, name := range keys(elements) {
		if _, isList := elements[name].([]any); !isList {
			named[name] = r.schema(elements[name], pointer+"/"+escapePointer(name))
		}
	}
	switch keyword {
	case "properties":
		n.Properties = named
	case "patternProperties":
		n.Patterned = true
	}
}

// items says what applies to the elements of an array, which older drafts write in
// another way.
func (r *nodeReader) items(n *Node, keywords map[string]any) {
	prefix, rest := "prefixItems", "items"
	if r.draft < draft2020 {
		prefix = "items"
		if _, isList := keywords["items"].([]any); isList {
			rest = "additionalItems"
		}
	}
	list, _ := keywords[prefix].([]any)
	for i := range list {
		n.Prefix = append(n.Prefix, r.nodes[n.pointer+"/"+prefix+"/"+strconv.Itoa(i)])
	}
	n.Items = r.nodes[n.pointer+"/"+rest]
}

func (r *nodeReader) value(n *Node, keyword string, value any) {
	switch keyword {
	case "type":
		names := texts(value)
		if name, isString := value.(string); isString {
			names = []string{name}
		}
		n.Types &= namedTypes(names)
	case "enum":
		allowed := Types(0)
		list, _ := value.([]any)
		for _, element := range list {
			allowed |= decodedType(element)
		}
		n.Types &= allowed
	case "const":
		n.Types &= decodedType(value)
	case "required":
		n.Required = map[string]bool{}
		for _, name := range texts(value) {
			n.Required[name] = true
		}
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		n.bound(keyword, value)
	case "default":
		n.Default = encode(value)
	case "$anchor":
		if name, isString := value.(string); isString && r.draft >= draft2019 {
			r.anchors["#"+name] = n
		}
	}
}

func (n *Node) bound(keyword string, value any) {
	number, _ := value.(json.Number)
	switch keyword {
	case "minimum":
		n.Minimum = string(number)
	case "maximum":
		n.Maximum = string(number)
	case "exclusiveMinimum":
		n.ExclusiveMinimum = string(number)
	case "exclusiveMaximum":
		n.ExclusiveMaximum = string(number)
	}
}

// link leads references to their targets. One that leads to a dynamic anchor is left out,
// since what it means depends on where it is evaluated.
func (r *nodeReader) link() {
	for _, reference := range r.references {
		target := r.anchors[reference.target]
		if pointer, isPointer := strings.CutPrefix(reference.target, "#"); isPointer && target == nil {
			if tokens, valid := parsePointer(pointer); valid {
				target = r.nodes[joinPointer(tokens)]
			}
		}
		if target != nil {
			reference.from.Also = append(reference.from.Also, target)
		}
	}
}

func namedTypes(names []string) Types {
	types := Types(0)
	for _, name := range names {
		switch name {
		case "null":
			types |= Null
		case "boolean":
			types |= Boolean
		case "integer":
			types |= Integer
		case "number":
			types |= Number
		case "string":
			types |= String
		case "array":
			types |= Array
		case "object":
			types |= Object
		}
	}
	return types
}

func decodedType(value any) Types {
	if number, isNumber := value.(json.Number); isNumber && !isInteger(number) {
		return Fraction
	}
	return namedTypes([]string{typeName(value)})
}

// encode writes a decoded value as JSON; numbers keep their digits.
func encode(value any) json.RawMessage {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil
	}
	return bytes.TrimSpace(text.Bytes())
}
