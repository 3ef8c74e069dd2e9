package caisson

import "encoding/json"

// CallContext describes the current call.
type CallContext struct {
	CallID string `json:"call_id"` // the host's unique id of the call
	Tool   string `json:"tool"`    // the registered name of the tool
	// Tenant, User and Session say on whose behalf the call is made; any may be empty. They are only
	// names, and do not authenticate anyone.
	Tenant  string `json:"tenant"`
	User    string `json:"user"`
	Session string `json:"session"`
	// Context holds the granted values of those that the tool's manifest requests under context.
	Context map[string]string `json:"context"`
	// Files are the user's files that the tool can open.
	Files []File `json:"files"`
	// TraceParent is the W3C traceparent to send with the tool's own requests, or empty.
	TraceParent string `json:"traceparent"`
	// Request is the tool's part of the caller's request. It is untrusted input.
	Request CallerRequest `json:"request"`
}

// CallerRequest is the tool's part of the request that led to a call.
type CallerRequest struct {
	// Definition is the tool as the request defines it: a JSON object, or nil.
	Definition json.RawMessage `json:"definition,omitempty"`
	// Values are values of the request, by name.
	Values map[string]string `json:"values,omitempty"`
}

// File is a file that a user has provided.
type File struct {
	Name     string `json:"name"` // the user's name for it
	Path     string `json:"path"` // for os.Open
	MIMEType string `json:"mime_type"`
	Bytes    int64  `json:"bytes"`
}

// Context returns the context of the current call. It needs no permission, because it contains only
// what the tool was granted. The error is an [*Error] or [ErrOutside].
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

// SecretExists reports whether the host has a secret with that name for this tool. The host never
// reveals the value, but adds it to the requests that it belongs to. The error is an [*Error] or
// [ErrOutside]; it is [Denied] if the manifest does not request the secret.
func SecretExists(name string) (bool, error) { return secretExists(secretsExists(), name) }

func secretExists(function hostFunction, name string) (bool, error) {
	response, err := answer[struct {
		Exists bool `json:"exists"`
	}](function, struct {
		Name string `json:"name"`
	}{name}, nil)
	return response.Exists, err
}
