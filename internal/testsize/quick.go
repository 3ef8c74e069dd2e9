//go:build !slow

package testsize

// Slow reports whether tests run at more than their quick size.
const Slow = false

// part is which part of all runs: none beyond the quick size.
const part = 0
