// Package noerr shortens tests.
package noerr

import "testing"

// Get returns a function that returns the value, and ends the test if there is an error: noerr.Get(os.ReadFile(path))(t).
func Get[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		return value
	}
}
