package manifests

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ErrTemplate is what failures of [ParseArgTemplate] wrap.
var ErrTemplate = errors.New("invalid argument template")

// ArgTemplate is one element of an argv template. The zero value is the empty
// argument. Get one from [ParseArgTemplate].
type ArgTemplate struct {
	source string
	parts  []templatePart
}

// templatePart is either literal text or a parameter.
type templatePart struct {
	literal string
	param   string
	dash    bool
}

var templateParam = regexp.MustCompile(`^[^{}|\s]+$`)

// ParseArgTemplate reads one element of an argv template: literal text with {param}
// or {param|dash} in it. {{ and }} stand for braces. The error wraps [ErrTemplate].
func ParseArgTemplate(source string) (ArgTemplate, error) {
	t := ArgTemplate{source: source}
	if strings.ContainsRune(source, 0) {
		return ArgTemplate{}, fmt.Errorf("%w: it has a NUL character", ErrTemplate)
	}
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			t.parts = append(t.parts, templatePart{literal: literal.String()})
			literal.Reset()
		}
	}
	for rest := source; rest != ""; {
		switch {
		case strings.HasPrefix(rest, "{{"), strings.HasPrefix(rest, "}}"):
			literal.WriteByte(rest[0])
			rest = rest[2:]
		case rest[0] == '{':
			inside, after, closed := strings.Cut(rest[1:], "}")
			if !closed {
				return ArgTemplate{}, fmt.Errorf("%w: %q opens a brace and does not close it", ErrTemplate, source)
			}
			part, err := parsePart(inside)
			if err != nil {
				return ArgTemplate{}, err
			}
			flush()
			t.parts = append(t.parts, part)
			rest = after
		case rest[0] == '}':
			return ArgTemplate{}, fmt.Errorf("%w: %q has a } without a {", ErrTemplate, source)
		default:
			end := strings.IndexAny(rest, "{}")
			if end < 0 {
				end = len(rest)
			}
			literal.WriteString(rest[:end])
			rest = rest[end:]
		}
	}
	flush()
	return t, nil
}

func parsePart(inside string) (templatePart, error) {
	name, filter, filtered := strings.Cut(inside, "|")
	if !templateParam.MatchString(name) {
		return templatePart{}, fmt.Errorf("%w: {%s} names no parameter", ErrTemplate, inside)
	}
	if filtered && filter != "dash" {
		return templatePart{}, fmt.Errorf("%w: {%s} has the unknown filter %q; the only one is dash", ErrTemplate, inside, filter)
	}
	return templatePart{param: name, dash: filtered}, nil
}

// String returns the template as it was written.
func (t ArgTemplate) String() string { return t.source }

// Params returns the names of the parameters in the template, in order.
func (t ArgTemplate) Params() []string {
	var names []string
	for _, part := range t.parts {
		if part.param != "" {
			names = append(names, part.param)
		}
	}
	return names
}

// alone returns the parameter if the template is nothing else.
func (t ArgTemplate) alone() (templatePart, bool) {
	if len(t.parts) == 1 && t.parts[0].param != "" {
		return t.parts[0], true
	}
	return templatePart{}, false
}

// isLiteral reports whether the template is exactly the text.
func (t ArgTemplate) isLiteral(text string) bool {
	return len(t.parts) == 1 && t.parts[0].param == "" && t.parts[0].literal == text
}
