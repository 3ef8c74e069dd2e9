package pause

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Read reads a paused batch. The document need not be trusted; its length is the caller's to bound.
func Read(document []byte) (*Batch, error) {
	b := &Batch{}
	err := strict(document, b)
	if err == nil {
		err = b.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidState, err)
	}
	b.Expires = b.Expires.UTC()
	return b, nil
}

// strict reads a single JSON value without unknown members.
func strict(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("unexpected data after the JSON value")
	}
	return nil
}

// jsonText is JSON inside a string, so that databases, which reformat JSON, keep it verbatim.
type jsonText json.RawMessage

// MarshalJSON writes the string.
func (t jsonText) MarshalJSON() ([]byte, error) { return json.Marshal(string(t)) }

// UnmarshalJSON reads the string. It fails if that does not hold JSON.
func (t *jsonText) UnmarshalJSON(text []byte) error {
	var held string
	if err := json.Unmarshal(text, &held); err != nil {
		return err
	}
	if !json.Valid([]byte(held)) {
		return errors.New("the string does not hold JSON")
	}
	*t = jsonText(held)
	return nil
}

// list is a JSON array whose memory is proportional to its text.
type list[E any] []E

// UnmarshalJSON reads the array. It fails for elements below the minimum size, white space aside, which take
// much more memory than text. Each element is checked before the next is read.
func (l *list[E]) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*l = nil
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if open, err := decoder.Token(); err != nil || open != json.Delim('[') {
		return errors.Join(errors.New("want a list"), err)
	}
	var read []E
	least := 0
	for decoder.More() {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return err
		}
		if least == 0 {
			shortest, err := json.Marshal(*new(E))
			if err != nil {
				return err
			}
			least = len(shortest)
		}
		element, err := element[E](raw, least)
		if err != nil {
			return fmt.Errorf("element %d: %w", len(read), err)
		}
		read = append(read, element)
	}
	*l = read
	return nil
}

// element reads one element of a list, of at least the given size.
func element[E any](raw []byte, least int) (read E, err error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return read, err
	}
	if compact.Len() < least {
		return read, errors.New("it is shorter than any valid element")
	}
	if err := strict(compact.Bytes(), &read); err != nil {
		return read, err
	}
	if checked, ok := any(&read).(interface{ check() error }); ok {
		err = checked.check()
	}
	return read, err
}
