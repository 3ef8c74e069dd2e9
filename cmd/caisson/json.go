package main

import (
	"encoding/json"
	"fmt"
)

// printJSON writes a value to stdout as one line, exactly as it is.
func (e environment) printJSON(value any) error {
	encoder := json.NewEncoder(e.stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("cannot write the output: %w", err)
	}
	return nil
}

// list returns the slice, or an empty one for nil, so that JSON has [] and not null.
func list[T any](elements []T) []T {
	if elements == nil {
		return []T{}
	}
	return elements
}
