// Package testsize says how much of a test runs. "make test" runs tests at a size that finishes soon, "make slow" (the
// build tag slow) a quarter of all, and "make nightly" (the tags slow and nightly) all:
//
//	for _, attack := range testsize.Sample(attacks(), 8) {
//	for range testsize.Of(100, 1000) {
//
// Where the pattern of -run selects subtests, samples are whole: every subtest can be selected by its name.
package testsize

import (
	"flag"
	"strings"
)

// Slow reports whether tests run at more than their quick size, and Whole whether they run at their full size. Unless
// tests are quick, one in part of all runs.
const (
	Slow  = part > 0
	Whole = part == 1
)

// Of returns the number that applies. It is never less than quick.
func Of(quick, all int) int {
	if part == 0 {
		return quick
	}
	return max(quick, all/max(part, 1))
}

// Sample returns about as many elements as apply, evenly spread. The first is always among them.
func Sample[T any](elements []T, quick int) []T {
	want := Of(quick, len(elements))
	if len(elements) <= want || quick < 1 || selectsSubtests() {
		return elements
	}
	sample := make([]T, want)
	for i := range sample {
		sample[i] = elements[i*len(elements)/want]
	}
	return sample
}

// QuickSample returns a sample where tests run at their quick size, and otherwise all: it is for cases that must all
// run before a change lands.
func QuickSample[T any](elements []T, quick int) []T {
	if Slow {
		return elements
	}
	return Sample(elements, quick)
}

// selectsSubtests reports whether the pattern of -run selects subtests.
func selectsSubtests() bool {
	run := flag.Lookup("test.run")
	return run != nil && strings.Contains(run.Value.String(), "/")
}
