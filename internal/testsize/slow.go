//go:build slow && !nightly

package testsize

// Slow reports whether tests run at more than their quick size.
const Slow = true

// part is which part of all runs.
const part = 4
