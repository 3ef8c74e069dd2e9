// Package noerr ends tests that get an error, in one line.
package noerr

import (
	"encoding/json"
	"testing"
)

// Check ends the test if there is an error.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// Get returns a function that returns the value, and ends the test if there is an error:
// noerr.Get(os.ReadFile(path))(t).
func Get[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Check(t, err)
		return value
	}
}

// Get2 does the same as [Get] for two values.
func Get2[T, U any](first T, second U, err error) func(testing.TB) (T, U) {
	return func(t testing.TB) (T, U) {
		t.Helper()
		Check(t, err)
		return first, second
	}
}

// Error returns only the error: noerr.Error(os.ReadFile(path)).
func Error[T any](_ T, err error) error { return err }

// Error2 does the same as [Error] for two values.
func Error2[T, U any](_ T, _ U, err error) error { return err }

// Decode returns a value from its JSON.
func Decode[T any](t testing.TB, text []byte) (value T) {
	t.Helper()
	Check(t, json.Unmarshal(text, &value))
	return value
}
