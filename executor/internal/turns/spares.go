package turns

// maxSpares is how many tenants, sessions and tools are kept that are nobody's, so that
// calls that come one after the other need not allocate them. large is from how many
// members a tenant's maps are not worth keeping.
const (
	maxSpares = 32
	large     = 32
)

type spares[T any] []*T

func (s *spares[T]) take() *T {
	last := len(*s) - 1
	if last < 0 {
		return new(T)
	}
	taken := (*s)[last]
	*s = (*s)[:last]
	return taken
}

func (s *spares[T]) give(spare *T) {
	if len(*s) < maxSpares {
		*s = append(*s, spare)
	}
}

// attend finds who makes a call, or writes them down.
func (q *Queue) attend(turn *Turn, c Call) {
	t := q.tenants[c.Tenant]
	if t == nil {
		t = q.spareTenants.take()
		if t.sessions == nil {
			t.sessions, t.tools = make(map[string]*session), make(map[string]*tool)
		}
		t.name, t.served = c.Tenant, q.now
		q.tenants[c.Tenant] = t
		q.most = max(q.most, len(q.tenants))
	}
	s := t.sessions[c.Session]
	if s == nil {
		s = q.spareSessions.take()
		s.name, s.served = c.Session, q.now
		t.sessions[c.Session] = s
		t.large = t.large || len(t.sessions) > large
	}
	o := t.tools[c.Tool]
	if o == nil {
		o = q.spareTools.take()
		o.name = c.Tool
		t.tools[c.Tool] = o
		t.large = t.large || len(t.tools) > large
	}
	turn.tenant, turn.session, turn.tool = t, s, o
}

// dismiss forgets those who made a call, if they have no other.
func (q *Queue) dismiss(turn *Turn) {
	t, s, o := turn.tenant, turn.session, turn.tool
	if s.running == 0 && len(s.lanes) == 0 {
		delete(t.sessions, s.name)
		*s = session{}
		q.spareSessions.give(s)
	}
	if o.running == 0 && len(o.lanes) == 0 {
		delete(t.tools, o.name)
		*o = tool{}
		q.spareTools.give(o)
	}
	if t.running > 0 || t.waiting > 0 {
		return
	}
	delete(q.tenants, t.name)
	if !t.large {
		*t = tenant{sessions: t.sessions, tools: t.tools}
		q.spareTenants.give(t)
	}
	if len(q.tenants) == 0 && q.most > large { // a map keeps the room of the most that it had
		q.tenants, q.ready, q.most = make(map[string]*tenant), nil, 0
	}
}
