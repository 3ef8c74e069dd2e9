// Package clients tests the dialects against the types of the providers' own clients for Python: openai,
// anthropic, google-genai and mcp. What the dialects write must be of these types, without members that
// they do not know; and what the clients write from them, the dialects must read. "make clients" installs
// the clients, in the versions of requirements.txt, and runs the tests.
//
// accept.py reads what the dialects write, and checks it with strict.py. compose.py and its parts, one for
// each dialect, write what the dialects read, in all the ways of written.py, from values that samples.py
// makes. shapes.py tells what the clients' types have.
package clients
