// Package calls lets a tool call other tools: those that its manifest asks for and the
// operator grants, by their exact names.
//
//	permission, err := calls.New(calls.Options{Tool: "research", Requests: requests, Grants: grants})
//	session := permission.Open(host.Call, time.Now)
//	record, err := session.Call(ctx, "web_search", `{"query":"caisson"}`)
//
// The other tool does what its own permissions allow, with arguments that this one chose:
// whoever grants a call grants that. So there are no globs, and case, an alias or another
// spelling makes another name, that no grant for the first one is for. What an alias that is
// granted itself leads to, whoever makes the call decides. A denial holds for the name that it
// has, too: a tool that must not be called is denied by each of its names that is granted.
//
// The permission decides before anybody is asked to make the call. Of the record, the guest
// gets what a model would, and its receipts: neither the log and the host calls of the other
// tool, nor what it took and how long, nor the repairs of its arguments, since those may tell context
// values that the guest does not have.
//
// It is for the runtime: its API promises no compatibility.
package calls
