// Package calls lets a tool call other tools. Its manifest must request each one, and the
// operator must grant it, by its exact name.
//
//	permission, err := calls.New("research", requests, grants, module)
//	session := permission.Open(host.Call, time.Now)
//	record, err := session.Call(ctx, "web_search", `{"query":"caisson"}`)
//
// The callee runs with its own permissions and with arguments that the caller chose, and a grant of the call grants
// that too. For this reason names have no globs and are compared exactly: a name in another case, an alias or another
// spelling needs its own grant. What a granted alias resolves to is up to the function that makes calls. A denial also
// applies to one name only: to deny a tool, deny each of its granted names.
//
// The permission is checked before that function is called. The guest gets the parts of the record that a model would
// get, and the receipts. It does not get the callee's log, host calls, usage or duration, nor the repairs of the
// arguments, since repairs may reveal context values that the guest does not have.
//
// The package is for the runtime. Its API carries no compatibility promise.
package calls
