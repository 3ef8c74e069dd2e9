package abi

import "github.com/caisson-run/caisson/tool"

// About is what a guest may know of the call that it runs for. Whoever makes it leaves out what
// the guest's tool has not been granted.
type About struct {
	CallID  string
	Tool    string // the registered name
	Tenant  string
	User    string
	Session string
	Context map[string]string // by name
	Files   []tool.File
	Trace   string // a W3C traceparent
}

// wireAbout fixes the names and the order of what a guest reads.
type wireAbout struct {
	CallID  string            `json:"call_id"`
	Tool    string            `json:"tool"`
	Tenant  string            `json:"tenant,omitempty"`
	User    string            `json:"user,omitempty"`
	Session string            `json:"session,omitempty"`
	Context map[string]string `json:"context"`
	Files   []tool.File       `json:"files"`
	Trace   string            `json:"traceparent,omitempty"`
}

// contextGet tells what the guest may know of its call. It is written down once, however often the
// guest asks.
func contextGet(c *call) (answer, error) {
	if err := c.request(); err != nil {
		return answer{}, err
	}
	if c.session.About == nil {
		return answer{}, unavailable("the tool has no context")
	}
	if c.session.about == nil {
		c.session.about = encode(c.session.About().wire())
	}
	return answer{status: statusOK, head: c.session.about}, nil
}

func (a About) wire() wireAbout {
	if a.Context == nil {
		a.Context = map[string]string{}
	}
	return wireAbout{
		CallID: a.CallID, Tool: a.Tool, Tenant: a.Tenant, User: a.User, Session: a.Session,
		Context: a.Context, Files: list(a.Files), Trace: a.Trace,
	}
}
