// Package lint says what a provider would refuse or ignore of a tool's JSON Schema and name, and
// changes the schema so that it does not. What a provider takes is data: see [Rules].
//
// A schema is gone through once. What it may cost is bounded by [MaxDepth], [MaxValues] and
// [MaxFindings], also where references are put in place of what they refer to. Nothing here
// holds state; values are for one goroutine.
package lint
