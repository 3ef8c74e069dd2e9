package schema

import (
	"context"
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// WithPlainIntegers returns a value that fits the schema, with its integers in digits: 3.0 and 30e-1 as 3. To JSON
// Schema these are the same integer, but few programs read them as one. An integer is a number that a schema which it
// fits allows no fraction; other numbers stay as they are written, and so does all else. A value that does not
// change is returned itself.
//
// The error is that of [Schema.Validate], or a [*ViolationError] for an integer that would be longer than numbers
// may be.
func (s *Schema) WithPlainIntegers(ctx context.Context, value []byte) ([]byte, error) {
	if !mayNeedDigits(value) {
		return value, nil
	}
	v, err := readValue(ctx, value)
	if err != nil {
		return nil, err
	}
	found := &integers{}
	if err := s.validate(v, &evaluation{meter: meter{ctx: ctx}, integers: found}); err != nil {
		return nil, err
	}
	return found.inDigits(value)
}

// mayNeedDigits reports whether a number in a JSON text has a fraction or an exponent.
func mayNeedDigits(text []byte) bool {
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			inString = !inString
		case inString && c == '\\':
			i++
		case inString:
		case c == '.', c|0x20 == 'e' && i > 0 && '0' <= text[i-1] && text[i-1] <= '9':
			return true
		}
	}
	return false
}

// integers collects the integers of a value that are not written in digits. A nil one collects nothing.
type integers struct{ found []jsontext.Value }

func (i *integers) add(v jsontext.Value) {
	if !isInteger(v.Text()) {
		i.found = append(i.found, v)
	}
}

func (i *integers) count() int {
	if i == nil {
		return 0
	}
	return len(i.found)
}

// drop forgets what was added to the first count ones: a schema that does not apply has no say.
func (i *integers) drop(count int) {
	if i != nil {
		i.found = i.found[:count]
	}
}

// inDigits returns the text in which the integers were found, with these in digits.
func (i *integers) inDigits(text []byte) ([]byte, error) {
	start := func(v jsontext.Value) int { start, _ := v.Span(); return start }
	slices.SortFunc(i.found, func(a, b jsontext.Value) int { return start(a) - start(b) })
	plain, end := make([]byte, 0, len(text)), 0
	for _, v := range slices.Compact(i.found) { // several schemas may have found one
		digits := parseDecimal(v.Text()).text()
		if len(digits) > maxNumberBytes {
			message := fmt.Sprintf("the integer %s has %d digits, over the limit of %d", v.Text(), len(digits), maxNumberBytes)
			return nil, violationError(Violation{pathOf(v.Path(), maxValueNameBytes), message})
		}
		from, to := v.Span()
		plain = append(append(plain, text[end:from]...), digits...)
		if end = to; len(plain) > MaxValueBytes {
			return nil, violationError(Violation{"", fmt.Sprintf("with its integers in digits it is over the limit of %d bytes", MaxValueBytes)})
		}
	}
	if end == 0 {
		return text, nil
	}
	return append(plain, text[end:]...), nil
}
