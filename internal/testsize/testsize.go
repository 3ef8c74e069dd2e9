// Package testsize says how much of a test runs. "make test" runs tests at a size that finishes soon,
// and "make slow" (the build tag slow) runs all of them:
//
//	for _, attack := range testsize.Sample(attacks(), 8) {
//	for range testsize.Of(100, 1000) {
package testsize

// Of returns the number that applies: quick, or with the build tag slow all.
func Of(quick, all int) int {
	if Slow {
		return all
	}
	return quick
}

// Sample returns about as many elements as quick says, evenly spread, or with the build tag slow all of
// them. The first is always among them.
func Sample[T any](elements []T, quick int) []T {
	if Slow || len(elements) <= quick || quick < 1 {
		return elements
	}
	sample := make([]T, quick)
	for i := range sample {
		sample[i] = elements[i*len(elements)/quick]
	}
	return sample
}
