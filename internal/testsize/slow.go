//go:build slow && !nightly

package testsize

// part says that a quarter runs; see [Of].
const part = 4
