package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// refusal says why arguments that [readMembers] does not take are not taken. It
// reads them token by token, which is slow but knows the place of the first fault.
func refusal(text string) error {
	if err := checkJSON(text); err != nil {
		return fmt.Errorf("%w: %w", ErrArguments, err)
	}
	return fmt.Errorf("%w: want a JSON object such as {\"key\": \"value\"}, not %s", ErrArguments, describe(strings.TrimSpace(text)))
}

// checkJSON reports the first thing wrong with a JSON text: syntax, trailing text,
// depth, or a doubled key.
func checkJSON(text string) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	// Each open container has a set of the keys seen in it; an array's set is nil.
	var open []map[string]bool
	wantKey := false
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			if len(open) > 0 {
				return fmt.Errorf("the JSON ends too early, at byte %d", len(text))
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("not JSON near byte %d: %w", decoder.InputOffset(), err)
		}
		if name, isName := token.(string); isName && wantKey {
			keys := open[len(open)-1]
			if isUnseen(name) {
				return fmt.Errorf("the key %+q holds a character that cannot be seen; leave it out", name)
			}
			if keys[name] {
				return fmt.Errorf("the key %q stands twice in one object; give it once", name)
			}
			keys[name] = true
			wantKey = false
			continue
		}
		switch token {
		case json.Delim('{'):
			open = append(open, map[string]bool{})
		case json.Delim('['):
			open = append(open, nil)
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
		if len(open) > MaxArgumentsDepth {
			return fmt.Errorf("nested deeper than %d levels", MaxArgumentsDepth)
		}
		if len(open) == 0 {
			if rest := strings.TrimSpace(text[decoder.InputOffset():]); rest != "" {
				return fmt.Errorf("text follows the JSON value, at byte %d", decoder.InputOffset())
			}
			return nil
		}
		wantKey = open[len(open)-1] != nil
	}
}

// unseen reports whether a character makes two keys look the same that are not.
func unseen(r rune) bool { return Deceives(r) }

// describe names the kind of a JSON value by how its text starts.
func describe(text string) string {
	switch text[0] {
	case '{':
		return "this one"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f', 'n':
		return text
	default:
		return "a number"
	}
}
