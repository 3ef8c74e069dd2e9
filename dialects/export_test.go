package dialects

// What the tests of this package's API also look at.

const MaxEvent = maxEvent
