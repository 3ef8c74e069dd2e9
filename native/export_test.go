package native

// Internals that the tests of this package's API use.

type Tool = function
