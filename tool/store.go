package tool

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// The types with methods in this file can be stored in a database column: their values implement [driver.Valuer], and
// pointers to them database/sql's Scanner. The column holds JSON as text, so its type can be TEXT, JSON or JSONB.
//
// Scan accepts text and bytes. NULL is the zero value, or an empty list. Unknown members are ignored.
// On failure, the value is unchanged.

// List is a list to store in its own column, such as of calls or references. It is [] in JSON and in a column, never
// null.
type List[E Call | Reference] []E

// MarshalJSON writes the list. An empty one is [].
func (l List[E]) MarshalJSON() ([]byte, error) { return json.Marshal(jsontext.List([]E(l))) }

// Value returns the list's JSON.
func (l List[E]) Value() (driver.Value, error) { return stored(l) }

// Scan reads the list's JSON.
func (l *List[E]) Scan(column any) error {
	var read []E
	if err := scan(&read, column); err != nil {
		return err
	}
	*l = jsontext.List(read)
	return nil
}

// Value returns the call's JSON.
func (c Call) Value() (driver.Value, error) { return stored(c) }

// Scan reads the call's JSON.
func (c *Call) Scan(column any) error { return scan(c, column) }

// Value returns the reference's JSON.
func (r Reference) Value() (driver.Value, error) { return stored(r) }

// Scan reads the reference's JSON.
func (r *Reference) Scan(column any) error { return scan(r, column) }

// Value returns the event's JSON.
func (e Event) Value() (driver.Value, error) { return stored(e) }

// Scan reads the event's JSON.
func (e *Event) Scan(column any) error { return scan(e, column) }

// Value returns the response's JSON.
func (r ChatResponse) Value() (driver.Value, error) { return stored(r) }

// Scan reads the response's JSON.
func (r *ChatResponse) Scan(column any) error { return scan(r, column) }

// Value returns the chunk's JSON.
func (r StreamResponse) Value() (driver.Value, error) { return stored(r) }

// Scan reads the chunk's JSON.
func (r *StreamResponse) Scan(column any) error { return scan(r, column) }

// Value returns the result's JSON.
func (r Result) Value() (driver.Value, error) { return stored(r) }

// Scan reads the result's JSON.
func (r *Result) Scan(column any) error { return scan(r, column) }

// Value returns the record's JSON.
func (r Record) Value() (driver.Value, error) { return stored(r) }

// Scan reads the record's JSON.
func (r *Record) Scan(column any) error { return scan(r, column) }

// stored returns JSON as text, because some databases do not accept bytes as JSON.
func stored(value any) (driver.Value, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("storing a %T: %w", value, err)
	}
	return string(text), nil
}

// scan replaces a value with that of a column.
func scan[T any](into *T, column any) error {
	var text []byte
	switch column := column.(type) {
	case nil:
		*into = *new(T)
		return nil
	case string:
		text = []byte(column)
	case []byte:
		text = column // not retained
	default:
		return fmt.Errorf("reading a %T: the column holds a %T; want text or bytes with JSON", *into, column)
	}
	var read T
	if err := json.Unmarshal(text, &read); err != nil {
		return fmt.Errorf("reading a %T: %w", *into, err)
	}
	*into = read
	return nil
}
