package modules

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// errArgs is wrapped by the errors of [ExpandArgs].
var errArgs = errors.New("invalid command line")

// Limits on an expanded argv template.
const (
	maxArgs      = 1024
	maxArgsBytes = 128 << 10
)

// ExpandArgs expands an argv template with the arguments of a call.
//
// Strings are inserted unchanged, numbers and booleans as in JSON, but without exponents. An element that is only a
// parameter is omitted if the argument is absent or null, and becomes one argument per element if it is an array.
// Within longer text, an argument must be a string, a number or a boolean.
//
// ExpandArgs rejects values that would change the meaning of the command line: those with a NUL
// character, and those that start with "-" at the beginning of an argument, unless the template has
// {param|dash} or an earlier element is exactly "--".
//
// The error is worded for a model.
func ExpandArgs(templates []ArgTemplate, arguments tool.Arguments) ([]string, error) {
	e := expansion{arguments: arguments, lists: map[string][]json.RawMessage{}}
	for _, template := range templates {
		if err := e.add(template); err != nil {
			return nil, err
		}
		if e.bytes > maxArgsBytes || len(e.args) > maxArgs {
			return nil, e.overLimit()
		}
		if template.isLiteral("--") {
			e.afterDashes = true
		}
	}
	return e.args, nil
}

// argError returns the error for the argument of one parameter.
func argError(param, problem string) error { return fmt.Errorf("%w: %s: %s", errArgs, param, problem) }

type expansion struct {
	arguments tool.Arguments
	lists     map[string][]json.RawMessage // by parameter; many templates may use one
	args      []string
	bytes     int
	// afterDashes is set after "--", where programs accept no options.
	afterDashes bool
}

func (e *expansion) overLimit() error {
	return fmt.Errorf("%w: over the limit of %d arguments or %d bytes; pass less", errArgs, maxArgs, maxArgsBytes)
}

func (e *expansion) append(arg string) {
	e.args = append(e.args, arg)
	e.bytes += len(arg) + 1
}

func (e *expansion) add(template ArgTemplate) error {
	if part, ok := template.onlyParam(); ok {
		return e.addOnlyParam(part)
	}
	var b strings.Builder
	for i, part := range template.parts {
		if part.param == "" {
			if before := template.parts[:i]; i > 0 && b.Len() == 0 && strings.HasPrefix(part.literal, "-") && !before[0].dash &&
				!e.afterDashes {
				return argError(before[0].param, "must not be empty, because what follows would become an option")
			}
			b.WriteString(part.literal)
			continue
		}
		raw, given := e.arguments.Get(part.param)
		if !given || isNull(raw) {
			return argError(part.param, "required here, but missing")
		}
		text, err := scalar(part.param, raw)
		if err != nil {
			return err
		}
		if b.Len() == 0 {
			if err := e.checkDash(part, text); err != nil {
				return err
			}
		}
		b.WriteString(text)
		if b.Len() > maxArgsBytes {
			return e.overLimit()
		}
	}
	e.append(b.String())
	return nil
}

func (e *expansion) addOnlyParam(part templatePart) error {
	raw, given := e.arguments.Get(part.param)
	if !given || isNull(raw) {
		return nil
	}
	values, read := e.lists[part.param]
	if !read {
		var err error
		if values, err = elements(part.param, raw); err != nil {
			return err
		}
		e.lists[part.param] = values
	}
	for _, value := range values {
		text, err := scalar(part.param, value)
		if err != nil {
			return err
		}
		if err := e.checkDash(part, text); err != nil {
			return err
		}
		e.append(text)
	}
	return nil
}

// elements returns the elements of an array, or a single value unchanged.
func elements(param string, raw json.RawMessage) ([]json.RawMessage, error) {
	if len(raw) == 0 || raw[0] != '[' {
		return []json.RawMessage{raw}, nil
	}
	var values []json.RawMessage // nil: decoding into raw would overwrite it
	if err := json.Unmarshal(raw, &values); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errArgs, param, err)
	}
	if len(values) > maxArgs {
		return nil, fmt.Errorf("%w: %s: %d items are over the limit of %d", errArgs, param, len(values), maxArgs)
	}
	return values, nil
}

func (e *expansion) checkDash(part templatePart, text string) error {
	if strings.HasPrefix(text, "-") && !part.dash && !e.afterDashes {
		return argError(part.param, "must not start with \"-\", which would make it an option")
	}
	return nil
}

func scalar(param string, raw json.RawMessage) (string, error) {
	switch {
	case len(raw) == 0 || isNull(raw):
		return "", argError(param, "null is not allowed in a command line; leave it out")
	case raw[0] == '{' || raw[0] == '[':
		return "", argError(param, "want a string, a number or a boolean here")
	case raw[0] == 't' || raw[0] == 'f':
		return string(raw), nil
	case raw[0] != '"':
		return plainNumber(param, string(raw))
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", fmt.Errorf("%w: %s: %w", errArgs, param, err)
	}
	if strings.ContainsRune(text, 0) {
		return "", argError(param, "must not have a NUL character")
	}
	return text, nil
}

// maxExponent is the largest exponent of a number for a command line, whose digits are written out.
const maxExponent = 400

// plainNumber returns a JSON number without an exponent. A program that reads digits only would take 2000e-1 for
// 2000, whatever the schema says of 200.
func plainNumber(param, text string) (string, error) {
	at := strings.IndexAny(text, "eE")
	if at < 0 {
		return text, nil
	}
	exponent, err := strconv.Atoi(text[at+1:])
	value, ok := new(big.Rat), false
	if err == nil && max(exponent, -exponent) <= maxExponent {
		value, ok = value.SetString(text)
	}
	if !ok {
		return "", argError(param, "has an exponent that is too large here; write the digits")
	}
	digits := value.FloatString(at + maxExponent) // all of them
	return strings.TrimSuffix(strings.TrimRight(digits, "0"), "."), nil
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// ArgTemplate is one element of an argv template. The zero value is the empty argument. Get one
// from [ParseArgTemplate].
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

// ParseArgTemplate parses one element of an argv template: literal text with {param} or {param|dash} in it. {{ and }}
// are escaped braces. The error only describes the mistake.
func ParseArgTemplate(source string) (ArgTemplate, error) {
	t := ArgTemplate{source: source}
	if strings.ContainsRune(source, 0) {
		return ArgTemplate{}, errors.New("it has a NUL character")
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
				return ArgTemplate{}, fmt.Errorf("%q opens a brace and does not close it", source)
			}
			part, err := parsePart(inside)
			if err != nil {
				return ArgTemplate{}, err
			}
			flush()
			t.parts = append(t.parts, part)
			rest = after
		case rest[0] == '}':
			return ArgTemplate{}, fmt.Errorf("%q has a } without a {", source)
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
		return templatePart{}, fmt.Errorf("{%s} names no parameter", inside)
	}
	if filtered && filter != "dash" {
		return templatePart{}, fmt.Errorf("{%s} has the unknown filter %q; the only one is dash", inside, filter)
	}
	return templatePart{param: name, dash: filtered}, nil
}

// String returns the template as it was written.
func (t ArgTemplate) String() string { return t.source }

// MarshalText returns the template as it was written.
func (t ArgTemplate) MarshalText() ([]byte, error) { return []byte(t.source), nil }

// UnmarshalText sets the template to the one that [ParseArgTemplate] returns for the text.
func (t *ArgTemplate) UnmarshalText(text []byte) (err error) {
	*t, err = ParseArgTemplate(string(text))
	return err
}

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

// onlyParam returns the parameter if the template consists of nothing else.
func (t ArgTemplate) onlyParam() (templatePart, bool) {
	if len(t.parts) == 1 && t.parts[0].param != "" {
		return t.parts[0], true
	}
	return templatePart{}, false
}

// Param returns the parameter that replaces the whole template, unless the template says that it may start with a dash.
func (t ArgTemplate) Param() (name string, ok bool) {
	part, found := t.onlyParam()
	return part.param, found && !part.dash
}

// isLiteral reports whether the template is exactly text.
func (t ArgTemplate) isLiteral(text string) bool {
	return len(t.parts) == 1 && t.parts[0].param == "" && t.parts[0].literal == text
}
