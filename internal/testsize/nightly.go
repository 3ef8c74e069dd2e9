//go:build slow && nightly

package testsize

// part says that all runs; see [Of].
const part = 1
