// Package turns decides whose call runs next, where more calls want to run than may.
//
// A free place goes to the tenant with the fewest running calls, in it to the session with
// the fewest, and in that to its oldest call that may run: one whose tool is at its limit
// does not hold up those behind it. Where two have the same count, the place goes to the
// one that was served longest ago, or, if it was not since it is here, has been here longest.
//
// A call that may run when it comes does not wait. It overtakes nobody by that, for while
// there is a free place no call waits that could take it.
package turns
