package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/internal/mistake"
)

func (r *reader) yaml(source []byte) *node {
	decoder := yaml.NewDecoder(bytes.NewReader(source))
	document, err := decodeYAML(decoder)
	if errors.Is(err, io.EOF) {
		return r.empty()
	}
	if err != nil {
		r.addMistake(mistakeOf(source, err))
		return nil
	}
	if second, err := decodeYAML(decoder); !errors.Is(err, io.EOF) {
		at := position{1, 1}
		if err == nil {
			at = yamlPosition(second)
		}
		r.add(at, "", mistake.Syntax, "a second document follows the "+r.subject.name, r.subject.split)
		return nil
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		return r.empty()
	}
	if content := document.Content[0]; content.Kind == yaml.ScalarNode && content.Value == "" && content.Style == 0 &&
		content.Anchor == "" {
		return r.empty() // only "---", whose content would be after the end of the file
	} else if content.Kind == yaml.ScalarNode && content.Style == 0 {
		// Without a space after any colon, the whole document is one text.
		if found, ok := joinedKey(bytes.Split(source, []byte("\n")), content.Line); ok {
			r.addMistake(found)
			return nil
		}
	}
	return r.yamlNode(document.Content[0], "", 0)
}

// decodeYAML reads the next document. The parser has panicked on hostile input, which is a syntax error.
func decodeYAML(decoder *yaml.Decoder) (document *yaml.Node, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			document, err = nil, fmt.Errorf("yaml: %v", cause)
		}
	}()
	document = &yaml.Node{}
	return document, decoder.Decode(document)
}

// yamlNode converts a node. It reports features that JSON does not have and converts them to the nearest JSON
// equivalent, so that the rest of the document is checked as well. It returns nil if reading has ended.
func (r *reader) yamlNode(source *yaml.Node, path string, depth int) *node {
	at := yamlPosition(source)
	if !r.enter(at, path, depth) {
		return nil
	}
	if source.Anchor != "" {
		r.add(at, path, mistake.Syntax, "anchors are not allowed",
			"remove &"+clip(source.Anchor)+" and repeat the value where it is needed")
	}
	if source.Kind != yaml.AliasNode && source.Style&yaml.TaggedStyle != 0 {
		r.add(at, path, mistake.Syntax, "the tag "+clip(source.Tag)+" is not allowed",
			"remove the tag; quote the value if it is text")
	}
	switch source.Kind {
	case yaml.MappingNode:
		return r.yamlObject(source, at, path, depth)
	case yaml.SequenceNode:
		n := &node{kind: listNode, at: at}
		for i, content := range source.Content {
			element := r.yamlNode(content, keypath.Index(path, i), depth+1)
			if element == nil {
				return nil
			}
			n.elements = append(n.elements, element)
		}
		return n
	case yaml.ScalarNode:
		return r.yamlScalar(source, at, path)
	default:
		r.add(at, path, mistake.Syntax, "aliases are not allowed", "repeat the value in place of *"+clip(source.Value))
		return &node{kind: nullNode, at: at, reported: true}
	}
}

func yamlPosition(n *yaml.Node) position { return position{max(n.Line, 1), max(n.Column, 1)} }

func (r *reader) yamlObject(source *yaml.Node, at position, path string, depth int) *node {
	n := &node{kind: objectNode, at: at}
	seen := map[string]position{}
	for i := 0; i+1 < len(source.Content); i += 2 {
		key := source.Content[i]
		inner := keypath.Key(path, key.Value)
		r.checkYAMLKey(key, yamlPosition(key), inner)
		value := r.yamlNode(source.Content[i+1], inner, depth+1)
		if value == nil {
			return nil
		}
		r.addMember(n, member{key.Value, yamlPosition(key), value}, inner, seen)
	}
	return n
}

func (r *reader) checkYAMLKey(key *yaml.Node, at position, path string) {
	switch {
	case key.Kind == yaml.AliasNode || key.Anchor != "":
		r.add(at, path, mistake.Syntax, "anchors and aliases are not allowed", "write the key out")
	case key.Kind != yaml.ScalarNode:
		r.add(at, path, mistake.Syntax, "a key must be text", "write one plain key before the colon")
	case key.ShortTag() == "!!merge":
		r.add(at, path, mistake.Syntax, "merge keys are not allowed", "write the merged keys out")
	case key.Style&yaml.TaggedStyle != 0:
		r.add(at, path, mistake.Syntax, "the tag "+clip(key.Tag)+" is not allowed", "remove the tag; quote the key")
	case key.Style == 0 && key.ShortTag() != "!!str" && key.ShortTag() != "!!timestamp":
		r.add(at, path, mistake.Syntax, fmt.Sprintf("the key %s is not text in YAML", clip(key.Value)),
			"put the key into quotes")
	}
}

// jsonNumber is the grammar of numbers in RFC 8259, section 6.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// yamlScalar reads the plain forms that YAML 1.2 and JSON read alike, since readers disagree on others.
func (r *reader) yamlScalar(source *yaml.Node, at position, path string) *node {
	n := &node{kind: textNode, at: at, text: source.Value}
	if source.Style&^yaml.TaggedStyle != 0 {
		return n // quoted or a block
	}
	switch source.ShortTag() {
	case "!!null":
		n.kind, n.text = nullNode, ""
	case "!!bool":
		n.kind, n.text = boolNode, strings.ToLower(source.Value)
	case "!!int", "!!float":
		n.kind = numberNode
		if jsonNumber.MatchString(source.Value) {
			return n
		}
		message, fix := clip(source.Value)+" is not a plain decimal number",
			"write it as in JSON, such as 1000 or 0.5; put it into quotes if it is text"
		if sha256Text.MatchString(source.Value) {
			message, fix = "YAML reads this digest as a number", "put it into quotes"
		}
		r.add(at, path, mistake.InvalidValue, message, fix)
		n.text, n.reported = "0", true
	}
	return n
}

func textOf(text string) *node { return &node{kind: textNode, text: text} }

// objectOf returns an object with the members whose value is not nil.
func objectOf(members ...member) *node {
	return &node{kind: objectNode, members: slices.DeleteFunc(members, func(m member) bool { return m.value == nil })}
}

func keyed(key string, value *node) member { return member{key: key, value: value} }

// flow returns a value as one line of YAML, and whether its text is plain, as people who paste it must read it.
func (n *node) flow() (string, bool) {
	var b bytes.Buffer
	plain := true
	n.write(&b, ", ", ": ", func(b *bytes.Buffer, text string) {
		plain = plain && isPlain(text)
		if needsQuotes(text) {
			text = `"` + text + `"`
		}
		b.WriteString(text)
	})
	return b.String(), plain
}

// isPlain reports whether a text has only letters, digits and punctuation that is not special in double quotes.
func isPlain(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("/._-+@, *:~=", c)
	})
}

// yamlWords are texts that some YAML readers do not read as text.
var yamlWords = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}

// needsQuotes reports whether a text may need quotes to be read as text.
func needsQuotes(text string) bool {
	if text == "" || slices.Contains(yamlWords, strings.ToLower(text)) {
		return true
	}
	if first := text[0]; first != '/' && (first < 'a' || first > 'z') && (first < 'A' || first > 'Z') {
		return true
	}
	return strings.ContainsFunc(text, func(c rune) bool {
		ascii := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		return !ascii && !strings.ContainsRune("/._-", c)
	})
}
