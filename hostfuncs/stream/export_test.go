package stream

// What the tests of this package's API also look at.

const DefaultBytes = defaultBytes
