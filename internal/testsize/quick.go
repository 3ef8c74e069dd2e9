//go:build !slow

package testsize

// part says that the quick size runs; see [Of].
const part = 0
