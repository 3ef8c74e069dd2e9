package dialects

// Unexported identifiers for the tests in package dialects_test.

const MaxEvent = maxEvent
