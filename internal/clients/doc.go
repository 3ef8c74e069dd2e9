// Package clients tests the dialects against the types of the providers' own clients for Python: openai,
// anthropic, google-genai and mcp. What the dialects write must be of these types, without members that
// they do not know; and what the clients write from them, the dialects must read. "make clients" installs
// the clients, in the versions of requirements.txt, and runs the tests.
//
// strict.py checks a value against a type, samples.py makes values of a type, accept.py reads what the
// dialects write, and compose.py writes what they read.
package clients
