package schema

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// Integers are the integers of a value that are not written in digits, such as 3.0 and 30e-1. An integer is a number
// that a schema which it fits allows no fraction. The zero value holds none.
type Integers struct {
	text  string // of the value
	found []jsontext.Value
}

// Parsed is a value that may have been parsed already, such as the arguments of a call.
type Parsed interface {
	json.Marshaler
	// Document returns the value as it was parsed, without names that occur twice and no deeper than [MaxDepth], or nil.
	Document() *jsontext.Document
}

// FindIntegers validates a value as [Schema.Validate] does, and returns its integers if it fits.
func (s *Schema) FindIntegers(ctx context.Context, value Parsed) (Integers, error) {
	text, v, err := readParsed(ctx, value)
	if err != nil {
		return Integers{}, err
	}
	e := &evaluation{meter: newMeter(ctx, 0), collects: true}
	if err := s.validate(v, e); err != nil {
		return Integers{}, err
	}
	start := func(v jsontext.Value) int { start, _ := v.Span(); return start }
	slices.SortFunc(e.integers, func(a, b jsontext.Value) int { return start(a) - start(b) })
	return Integers{text, slices.Compact(e.integers)}, nil // several schemas may have found one
}

// readParsed returns a value and its text. It parses the text only if that has not been done within the limits.
func readParsed(ctx context.Context, value Parsed) (string, jsontext.Value, error) {
	if doc := value.Document(); doc != nil {
		e := doc.Extent()
		if len(doc.Text()) <= MaxValueBytes && e.Values <= maxValues && e.Name <= maxValueNameBytes &&
			e.Number <= maxNumberBytes && !e.Exponents {
			return doc.Text(), doc.Root(), ended(ctx)
		}
	}
	text, err := value.MarshalJSON()
	if err != nil {
		return "", jsontext.Value{}, err
	}
	v, err := readValue(ctx, string(text))
	return string(text), v, err
}

// InDigits returns the value with its integers in digits, or nil if they are all written like this. To JSON Schema 3.0
// is the same integer as 3, but few programs read it as one. Everything else is unchanged, other numbers as well.
//
// The error is a [*ViolationError] for an integer that would be longer than numbers may be, or for a value over
// [MaxValueBytes].
func (i Integers) InDigits() ([]byte, error) {
	if len(i.found) == 0 {
		return nil, nil
	}
	plain, end := make([]byte, 0, len(i.text)), 0
	for _, v := range i.found {
		digits := parseDecimal(v.Text()).text()
		if len(digits) > maxNumberBytes {
			message := fmt.Sprintf("the integer %s has %d digits, over the limit of %d", v.Text(), len(digits), maxNumberBytes)
			return nil, violationError(Violation{pathOf(v.Path(), maxValueNameBytes), message})
		}
		from, to := v.Span()
		plain = append(append(plain, i.text[end:from]...), digits...)
		if end = to; len(plain) > MaxValueBytes {
			return nil,
				violationError(
					Violation{"", fmt.Sprintf("with its integers in digits it is over the limit of %d bytes", MaxValueBytes)})
		}
	}
	return append(plain, i.text[end:]...), nil
}
