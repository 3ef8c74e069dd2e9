package manifests

import (
	"bytes"
	_ "embed"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The readers write the JSON Schemas: given a node with a schema in place of a value, each notes in it the accepted
// values. The files below add keywords that only people and editors need, by the path of the value: descriptions,
// defaults, examples, and rules between keys. In a path, [] is any element of a list, and * any key that authors
// choose.

//go:embed manifest.about.json
var manifestAbout []byte

//go:embed policy.about.json
var policyAbout []byte

// JSONSchema returns a JSON Schema (draft 2020-12) of manifests, for editors. It covers every key
// and most rules; [Parse] checks all of them. The caller may modify the result.
func JSONSchema() []byte { return manifestSchema().text() }

// PolicyJSONSchema returns a JSON Schema (draft 2020-12) of policies, as [JSONSchema] does for manifests.
func PolicyJSONSchema() []byte { return policySchema().text() }

// schemaSource has the parts of a JSON Schema: the schema that a reader noted, and the additions of a file.
type schemaSource struct{ noted, about *node }

func manifestSchema() *schemaSource {
	return newSchema(manifestSubject, manifestAbout, func(r *reader, root *node) { r.manifest(root) })
}

func policySchema() *schemaSource {
	return newSchema(policySubject, policyAbout, func(r *reader, root *node) { r.policy(root) })
}

func newSchema(of subject, about []byte, read func(r *reader, root *node)) *schemaSource {
	root := &node{schema: objectOf()}
	read(&reader{subject: of}, root)
	return &schemaSource{root.schema, (&reader{}).json(about)}
}

func (s *schemaSource) text() []byte {
	all := s.noted.described("", s.about)
	draft := keyed("$schema", textOf("https://json-schema.org/draft/2020-12/schema"))
	all.members = slices.Insert(all.members, 0, draft)
	var b bytes.Buffer
	all.indent(&b, "\n")
	return append(b.Bytes(), '\n')
}

const maxSchemaLine = 160

// described returns a schema with the additions for it and those in it, which override what the reader noted.
func (n *node) described(path string, texts *node) *node {
	all := objectOf()
	about := texts.take(path)
	all.members = append(all.members, about.members...)
	for _, m := range n.members {
		switch m.key {
		case "properties":
			properties := objectOf()
			for _, p := range m.value.members {
				inner := strings.TrimPrefix(path+"."+p.key, ".")
				properties.members = append(properties.members, keyed(p.key, p.value.described(inner, texts)))
			}
			m.value = properties
		case "items":
			m.value = m.value.described(path+"[]", texts)
		case "additionalProperties":
			if m.value.kind == objectNode {
				m.value = m.value.described(path+".*", texts)
			}
		}
		if about.get(m.key) == nil {
			all.members = append(all.members, m)
		}
	}
	return all
}

// take removes a member and returns its value, or an empty node if there is none.
func (n *node) take(key string) *node {
	value := n.below(key)
	n.members = slices.DeleteFunc(n.members, func(m member) bool { return m.key == key })
	return value
}

// indent writes a value, over several lines if one would be long. The line break includes the indentation.
func (n *node) indent(b *bytes.Buffer, lineBreak string) {
	var short bytes.Buffer
	n.write(&short, ", ", ": ", writeString)
	line := short.String()
	if len(lineBreak)+len(line) <= maxSchemaLine || n.kind != listNode && n.kind != objectNode {
		b.WriteString(line)
		return
	}
	begin, inner := line[:1], lineBreak+"  "
	for _, element := range n.elements {
		b.WriteString(begin + inner)
		element.indent(b, inner)
		begin = ","
	}
	for _, m := range n.members {
		b.WriteString(begin + inner)
		writeString(b, m.key)
		b.WriteString(": ")
		m.value.indent(b, inner)
		begin = ","
	}
	b.WriteString(lineBreak + line[len(line)-1:])
}

// note sets a keyword of the schema of a node. It returns false if the node has none.
func (n *node) note(keyword string, value *node) bool {
	if n.schema == nil {
		return false
	}
	*n.schema = *n.schema.with(keyword, value)
	return true
}

func (n *node) noteBytes(minimum, maximum int) {
	if minimum > 0 {
		n.note("minLength", intOf(minimum))
	}
	n.note("maxLength", intOf(maximum))
	n.note("$comment", textOf("in bytes"))
}

func (n *node) noteRange(minimum, maximum int64) {
	n.note("type", textOf("integer"))
	n.note("minimum", intOf(minimum))
	if maximum < math.MaxInt64 {
		n.note("maximum", intOf(maximum))
	}
}

func (n *node) noteWords(words []string) bool {
	if n.schema != nil {
		n.schema.take("type")
	}
	if len(words) == 1 {
		return n.note("const", textOf(words[0]))
	}
	return n.note("enum", listed(words, textOf))
}

// noteFields notes the keys of an object. If it has several forms, it is called for each.
func (n *node) noteFields(fields []field) {
	properties, again := n.schema.get("properties"), true
	if properties == nil {
		properties, again = objectOf(), false
	}
	var required []string
	for _, f := range fields {
		if properties.get(f.key) == nil {
			properties.members = append(properties.members, keyed(f.key, objectOf()))
		}
		if f.read != nil {
			f.read(&node{schema: properties.get(f.key)}, "")
		}
		if f.example != "" && (!again || hasText(n.schema.below("required"), f.key)) {
			required = append(required, f.key)
		}
	}
	n.note("type", textOf("object"))
	n.schema.take("required")
	if len(required) > 0 {
		n.note("required", listed(required, textOf))
	}
	n.note("additionalProperties", boolOf(false))
	n.note("properties", properties)
}

// noteMembers notes an object whose keys are chosen by the author.
func (n *node) noteMembers(limit int, read func(m member)) {
	if n.schema == nil {
		return
	}
	value := objectOf()
	read(member{key: "*", value: &node{schema: value}})
	n.note("maxProperties", intOf(limit))
	if names := value.take("propertyNames"); len(names.members) > 0 {
		n.note("propertyNames", names)
	}
	if len(value.members) > 0 {
		n.note("additionalProperties", value)
	}
}

func (n *node) noteElements(limit int, read func(n *node)) {
	if n.schema == nil {
		return
	}
	element := objectOf()
	read(&node{schema: element})
	n.note("maxItems", intOf(limit))
	n.note("items", element)
}

// or returns the node to read if a value is not the word. In a schema, it is an alternative to the word.
func (n *node) or(word string) *node {
	if n.schema == nil {
		return n
	}
	other := objectOf()
	n.note("anyOf", &node{kind: listNode, elements: []*node{other, objectOf(keyed("const", textOf(word)))}})
	return &node{schema: other}
}

func intOf[N int | int64](number N) *node {
	return &node{kind: numberNode, text: strconv.FormatInt(int64(number), 10)}
}

func boolOf(value bool) *node { return &node{kind: boolNode, text: strconv.FormatBool(value)} }
