package caisson

// CallContext is what the host tells a tool of the call that it runs for.
type CallContext struct {
	CallID string `json:"call_id"` // the host's id of the call, which never repeats
	Tool   string `json:"tool"`    // the name by which the host knows the tool
	// Tenant, User and Session say on whose behalf the call is made, where the host tells them
	// apart. They are names, and prove nothing to anybody else.
	Tenant  string `json:"tenant"`
	User    string `json:"user"`
	Session string `json:"session"`
	// Context holds the values that the tool's manifest asks for under context, and was granted.
	Context map[string]string `json:"context"`
	// Files are those that the user has handed over and that the tool can open.
	Files []File `json:"files"`
	// TraceParent is the request's W3C traceparent, for requests that the tool makes; empty for none.
	TraceParent string `json:"traceparent"`
}

// File is a file that a user has handed over.
type File struct {
	Name     string `json:"name"` // as the user calls it
	Path     string `json:"path"` // as os.Open takes it
	MIMEType string `json:"mime_type"`
	Bytes    int64  `json:"bytes"`
}

// Context returns what the host tells of the call. It needs no permission, since it holds nothing
// that the tool was not granted. The error is an [*Error] or [ErrOutside].
//
//	call, err := caisson.Context()
//	if err != nil {
//		return err
//	}
//	for _, file := range call.Files {
//		content, err := os.ReadFile(file.Path)
//		…
//	}
func Context() (*CallContext, error) { return callContext(contextGet()) }

func callContext(function hostFunction) (*CallContext, error) {
	call, err := answer[CallContext](function, struct{}{}, nil)
	if err == nil && call.CallID == "" {
		err = function.malformed()
	}
	if err != nil {
		return nil, err
	}
	return &call, nil
}

// SecretExists reports whether the host has the secret of that name for this tool. The
// value stays with the host, which puts it into the requests that it belongs to. The error is
// an [*Error] or [ErrOutside]; it is [Denied] where the manifest does not ask for the secret.
func SecretExists(name string) (bool, error) { return secretExists(secretsExists(), name) }

func secretExists(function hostFunction, name string) (bool, error) {
	response, err := answer[struct {
		Exists bool `json:"exists"`
	}](function, struct {
		Name string `json:"name"`
	}{name}, nil)
	return response.Exists, err
}
