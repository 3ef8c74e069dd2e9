//go:build slow

package testsize

// Slow reports whether tests run at their full size.
const Slow = true
