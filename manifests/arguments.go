package manifests

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// ErrArgs is what failures of [ExpandArgs] wrap.
var ErrArgs = errors.New("invalid command line")

// Bounds on an expanded argv template.
const (
	MaxArgs      = 1024
	MaxArgsBytes = 128 << 10
)

// ExpandArgs fills an argv template with the arguments of a call.
//
// Strings stand in it as they are, numbers and booleans as JSON, as they were written.
// An element that is a parameter and nothing else vanishes where the argument is absent
// or null, and becomes one argument per element where it is an array. Inside longer
// text an argument must be a string, a number or a boolean.
//
// What would change the meaning of the command line is refused: a NUL character, and a
// value that starts with "-" and begins its argument, unless the template says
// {param|dash} or an element before it is exactly "--".
//
// The error wraps [ErrArgs] and is worded for a model.
func ExpandArgs(templates []ArgTemplate, arguments tool.Arguments) ([]string, error) {
	e := expansion{arguments: arguments, lists: map[string][]json.RawMessage{}}
	for _, template := range templates {
		if err := e.add(template); err != nil {
			return nil, err
		}
		if e.bytes > MaxArgsBytes || len(e.args) > MaxArgs {
			return nil, e.overLimit()
		}
		if template.isLiteral("--") {
			e.afterDashes = true
		}
	}
	return e.args, nil
}

type expansion struct {
	arguments tool.Arguments
	lists     map[string][]json.RawMessage // by parameter, once they are read: many templates may name one
	args      []string
	bytes     int
	// afterDashes: programs take nothing after "--" for an option.
	afterDashes bool
}

func (e *expansion) overLimit() error {
	return fmt.Errorf("%w: over the limit of %d arguments or %d bytes; pass less", ErrArgs, MaxArgs, MaxArgsBytes)
}

func (e *expansion) append(arg string) {
	e.args = append(e.args, arg)
	e.bytes += len(arg) + 1
}

func (e *expansion) add(template ArgTemplate) error {
	if part, alone := template.alone(); alone {
		return e.addAlone(part)
	}
	var b strings.Builder
	for i, part := range template.parts {
		if part.param == "" {
			if before := template.parts[:i]; i > 0 && b.Len() == 0 && strings.HasPrefix(part.literal, "-") && !before[0].dash && !e.afterDashes {
				return fmt.Errorf("%w: %s: must not be empty, which would make an option of what follows", ErrArgs, before[0].param)
			}
			b.WriteString(part.literal)
			continue
		}
		raw, given := e.arguments.Get(part.param)
		if !given || isNull(raw) {
			return fmt.Errorf("%w: %s: missing; it is required here", ErrArgs, part.param)
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
		if b.Len() > MaxArgsBytes {
			return e.overLimit()
		}
	}
	e.append(b.String())
	return nil
}

func (e *expansion) addAlone(part templatePart) error {
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

// elements returns the elements of an array, or a single value as it is.
func elements(param string, raw json.RawMessage) ([]json.RawMessage, error) {
	if len(raw) == 0 || raw[0] != '[' {
		return []json.RawMessage{raw}, nil
	}
	var values []json.RawMessage // nil: decoding into raw would overwrite it
	if err := json.Unmarshal(raw, &values); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrArgs, param, err)
	}
	if len(values) > MaxArgs {
		return nil, fmt.Errorf("%w: %s: %d items are over the limit of %d", ErrArgs, param, len(values), MaxArgs)
	}
	return values, nil
}

func (e *expansion) checkDash(part templatePart, text string) error {
	if strings.HasPrefix(text, "-") && !part.dash && !e.afterDashes {
		return fmt.Errorf("%w: %s: must not start with \"-\", which would make it an option", ErrArgs, part.param)
	}
	return nil
}

// scalar returns the text of a string, a number or a boolean.
func scalar(param string, raw json.RawMessage) (string, error) {
	switch {
	case len(raw) == 0 || isNull(raw):
		return "", fmt.Errorf("%w: %s: null has no place in a command line; leave it out", ErrArgs, param)
	case raw[0] == '{' || raw[0] == '[':
		return "", fmt.Errorf("%w: %s: want a string, a number or a boolean here", ErrArgs, param)
	case raw[0] != '"':
		return string(raw), nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", fmt.Errorf("%w: %s: %w", ErrArgs, param, err)
	}
	if strings.ContainsRune(text, 0) {
		return "", fmt.Errorf("%w: %s: must not have a NUL character", ErrArgs, param)
	}
	return text, nil
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }
