package runtime

// GrantError reports a grant or a denial of a directory with which a tool cannot be loaded. [Runtime.Load] returns
// errors that wrap it. Those about secrets wrap a secrets.Error instead.
type GrantError struct {
	Path   string // the guest path
	Origin string // where the operator wrote it, such as "caisson.yaml:14"; may be empty
	Denied bool   // whether it is a denial
	Err    error  // what is wrong, with the path and the origin
}

// Error returns what is wrong.
func (e *GrantError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *GrantError) Unwrap() error { return e.Err }
