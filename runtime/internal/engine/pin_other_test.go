//go:build !linux

package engine

import "testing"

// pinThread does nothing where a thread cannot be kept on one processor.
func pinThread(*testing.B) (release func()) { return func() {} }
