package gemini

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/tool"
)

// partialArg is a value, or a piece of a string, at one position in the arguments.
type partialArg struct {
	JSONPath     string          `json:"jsonPath" alias:"json_path"`
	String       *string         `json:"stringValue" alias:"string_value"`
	Number       json.RawMessage `json:"numberValue" alias:"number_value"` // its digits are kept
	Bool         *bool           `json:"boolValue" alias:"bool_value"`
	Null         json.RawMessage `json:"nullValue" alias:"null_value"` // null or "NULL_VALUE"
	WillContinue bool            `json:"willContinue" alias:"will_continue"`
}

// literal returns the value as JSON, unless it is a string or absent. A null is a value only if no other
// kind is mentioned: clients that write absent members write them all as null.
func (p *partialArg) literal() (string, error) {
	switch {
	case !wire.Absent(p.Number):
		if c := p.Number[0]; c != '-' && (c < '0' || c > '9') {
			return "", errors.New("numberValue is not a JSON number")
		}
		return string(p.Number), nil
	case p.Bool != nil:
		return strconv.FormatBool(*p.Bool), nil
	case !wire.Absent(p.Null) || len(p.Null) > 0 && len(p.Number) == 0:
		return "null", nil
	}
	return "", nil
}

// step leads from a container to one of its members or elements.
type step struct {
	name    string
	index   int
	element bool
}

// parsePath reads a path to a single position, as in RFC 9535: $.a[0]['b c'].
func parsePath(path string) ([]step, error) {
	rest, found := strings.CutPrefix(path, "$")
	if !found || rest == "" {
		return nil, fmt.Errorf("%q is not a path to an argument, such as $.city", tool.Shown(path, 64))
	}
	var steps []step
	for rest != "" {
		var next step
		var ok bool
		if next, rest, ok = parseStep(rest); !ok {
			return nil, fmt.Errorf("%q is not a path to a single value, such as $.cities[0].name", tool.Shown(path, 64))
		}
		if steps = append(steps, next); len(steps) > tool.MaxArgumentsDepth {
			return nil, fmt.Errorf("the path is deeper than %d levels", tool.MaxArgumentsDepth)
		}
	}
	return steps, nil
}

func parseStep(path string) (next step, rest string, ok bool) {
	if member, found := strings.CutPrefix(path, "."); found {
		end := strings.IndexAny(member, ".[")
		if end < 0 {
			end = len(member)
		}
		return step{name: member[:end]}, member[end:], end > 0
	}
	inside, found := strings.CutPrefix(path, "[")
	if !found || inside == "" {
		return step{}, "", false
	}
	if quote := inside[0]; quote == '\'' || quote == '"' {
		return parseQuoted(inside[1:], quote)
	}
	digits, rest, found := strings.Cut(inside, "]")
	index, err := strconv.Atoi(digits)
	return step{index: index, element: true}, rest, found && err == nil && index >= 0
}

// parseQuoted reads a name, and the quote and bracket after it. Escapes are those of JSON, and the quote's.
func parseQuoted(text string, quote byte) (next step, rest string, ok bool) {
	literal := []byte{'"'}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			err := json.Unmarshal(append(literal, '"'), &next.name)
			rest, ok = strings.CutPrefix(text[i+1:], "]")
			return next, rest, ok && err == nil
		case c == '\\' && i+1 < len(text):
			if i++; text[i] != '\'' {
				literal = append(literal, '\\')
			}
			literal = append(literal, text[i])
		case c == '"':
			literal = append(literal, '\\', '"')
		default:
			literal = append(literal, c)
		}
	}
	return step{}, "", false
}

// node is a value that is being assembled. The zero value is an unknown value.
type node struct {
	literal  string           // of values other than strings
	text     *strings.Builder // of a string; nil for other values
	goesOn   bool             // whether more of the string follows
	members  []member
	at       map[string]*node // the members
	elements []*node
}

type member struct {
	name  string
	value *node
}

var (
	errKind = errors.New("the value has another type than earlier values for this path")
	errHole = errors.New("the index skips elements of the array")
	errMany = fmt.Errorf("the arguments of the response have more than %d values", maxValues)
)

// maxValues limits the values of all arguments of a response that come in pieces. Two bytes of a path can
// add one, and each takes a few hundred.
const maxValues = 65_536

// put sets the value that the steps lead to. It adds the number of new values to count.
func (n *node) put(steps []step, p partialArg, count *int) error {
	for _, s := range steps {
		var err error
		if n, err = n.step(s, count); err != nil {
			return err
		}
	}
	literal, err := p.literal()
	switch {
	case err != nil:
		return err
	case p.String != nil:
		return n.say(*p.String, p.WillContinue)
	case literal == "":
		n.goesOn = n.goesOn && p.WillContinue
		return nil // it only announces a value, or ends one
	case !n.empty():
		return errKind
	}
	n.literal = literal
	return nil
}

func (n *node) say(text string, goesOn bool) error {
	switch {
	case n.empty():
		n.text = &strings.Builder{}
	case n.text == nil || !n.goesOn:
		return errKind
	}
	n.goesOn = goesOn
	n.text.WriteString(text)
	return nil
}

func (n *node) empty() bool {
	return n.literal == "" && n.text == nil && len(n.members) == 0 && len(n.elements) == 0
}

func (n *node) step(s step, count *int) (*node, error) {
	if n.literal != "" || n.text != nil || s.element && len(n.members) > 0 || !s.element && len(n.elements) > 0 {
		return nil, errKind
	}
	if s.element {
		if s.index > len(n.elements) {
			return nil, errHole
		}
		if s.index < len(n.elements) {
			return n.elements[s.index], nil
		}
	} else if known := n.at[s.name]; known != nil {
		return known, nil
	}
	if *count++; *count > maxValues {
		return nil, errMany
	}
	made := &node{}
	if s.element {
		n.elements = append(n.elements, made)
		return made, nil
	}
	if n.at == nil {
		n.at = map[string]*node{}
	}
	n.at[s.name] = made
	n.members = append(n.members, member{s.name, made})
	return made, nil
}

// appendTo appends the value's JSON, with members in the order in which they began. An unknown value is null.
func (n *node) appendTo(out []byte) []byte {
	switch {
	case n.text != nil:
		return append(out, jsontext.Quote(n.text.String())...)
	case n.literal != "":
		return append(out, n.literal...)
	case len(n.members) > 0:
		for i, m := range n.members {
			out = append(append(out, "{,"[min(i, 1)]), jsontext.Quote(m.name)...)
			out = m.value.appendTo(append(out, ':'))
		}
		return append(out, '}')
	case len(n.elements) > 0:
		for i, e := range n.elements {
			out = e.appendTo(append(out, "[,"[min(i, 1)]))
		}
		return append(out, ']')
	}
	return append(out, "null"...)
}
