// Package repair changes what a language model wrote as arguments where the tool's schema
// leaves no doubt about what was meant, and says what it changed.
//
// Arguments that fit are not changed, but for absent members that have a default. In
// those that do not, a value that its schema allows is not changed either. Each change is
// of one rule:
//
//	cast_number   "5" is 5 where a number can stand and no string; the digits stay
//	cast_boolean  "true" and "false" where a boolean can stand and no string
//	parse_json    a string that holds an object or an array, where one can stand and no
//	              string, or that is the arguments as a whole; strings inside are not opened
//	wrap_array    one value is an array of one where nothing but an array can stand
//	unwrap        {"arguments": {…}}, or "input", "parameters" or the tool's name, where that
//	              is no parameter and all that is inside are
//	clamp         a number is the nearest one that minimum and maximum allow
//	drop_null     a null that is not allowed and not required is absent
//	default       an absent member has the default of its schema
//	tolerant_json text that is almost JSON is read as [tolerant] says
//	alias         an argument has the name of its parameter instead of an alias that the
//	              manifest declares, and the value that this means; [Rename] does it first, and
//	              unwrap with what it unwraps
//
// # Where schemas leave doubt
//
// References inside the schema and allOf are followed. Of anyOf and oneOf, the types of
// all alternatives together count; beyond that, a value that fits none is repaired for
// each alternative, and is changed only if that comes to one and the same value. What
// depends on conditions (if, dependentSchemas, not) and on patterns of names is not looked
// at. Defaults inside alternatives are not filled in, and neither are those that do not
// fit their own schema, or that two schemas disagree on. All defaults are left out where
// the arguments fit without them but not with them.
//
// # Bounds
//
// A repair makes at most [MaxRepairs] changes and does a bounded amount of work. What
// takes more is left as it is in whole. The result keeps the bounds of
// [tool.ParseArguments].
package repair
