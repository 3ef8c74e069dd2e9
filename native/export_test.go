package native

// What the tests of this package's API also look at.

type Tool = function
