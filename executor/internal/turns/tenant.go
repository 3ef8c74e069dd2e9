package turns

import "slices"

// tenant is one that has a call running or waiting.
type tenant struct {
	name             string
	running, waiting int
	served           uint64 // when it last got a place, or came
	sessions         map[string]*session
	tools            map[string]*tool
	wanted           []*tool // those that calls wait for
	// next has the call that gets the tenant's next place; nil while none may run,
	// wherever the free place is.
	next   *lane
	slotOf int // in Queue.ready
	large  bool
}

// session is one that has a call running or waiting.
type session struct {
	name    string
	running int
	served  uint64
	lanes   []*lane
}

// tool is one that has a call of the tenant running or waiting.
type tool struct {
	name    string
	running int
	lanes   heap[*lane]
}

// lane is a session's calls that wait for one tool, the oldest first. It has at least one.
type lane struct {
	session     *session
	tool        *tool
	first, last *Turn
	slotOf      int // in tool.lanes
}

func (t *tenant) slot() *int { return &t.slotOf }

func (t *tenant) before(other *tenant) bool {
	if t.running != other.running {
		return t.running < other.running
	}
	return t.served < other.served
}

func (l *lane) slot() *int { return &l.slotOf }

func (l *lane) before(other *lane) bool {
	switch {
	case l.session.running != other.session.running:
		return l.session.running < other.session.running
	case l.session != other.session:
		return l.session.served < other.session.served
	}
	return l.first.order < other.first.order
}

// append lets a call wait behind those of its session and tool.
func (t *tenant) append(turn *Turn) {
	l := turn.session.lane(turn.tool)
	if l == nil {
		l = &lane{session: turn.session, tool: turn.tool, first: turn}
		l.session.lanes = append(l.session.lanes, l)
		if len(l.tool.lanes) == 0 {
			t.wanted = append(t.wanted, l.tool)
		}
	} else {
		turn.ahead, l.last.behind = l.last, turn
	}
	l.last, turn.lane = turn, l
	t.waiting++
	l.tool.lanes.put(l)
}

// remove takes a waiting call out of its lane.
func (t *tenant) remove(turn *Turn) {
	l := turn.lane
	if turn.ahead == nil {
		l.first = turn.behind
	} else {
		turn.ahead.behind = turn.behind
	}
	if turn.behind == nil {
		l.last = turn.ahead
	} else {
		turn.behind.ahead = turn.ahead
	}
	turn.lane, turn.ahead, turn.behind = nil, nil, nil
	t.waiting--
	if l.first != nil {
		l.tool.lanes.put(l)
		return
	}
	l.tool.lanes.remove(l)
	l.session.lanes = without(l.session.lanes, l)
	if len(l.tool.lanes) == 0 {
		t.wanted = without(t.wanted, l.tool)
	}
}

// lane returns where the session's calls wait for a tool, or nil.
func (s *session) lane(wanted *tool) *lane {
	for _, l := range s.lanes {
		if l.tool == wanted {
			return l
		}
	}
	return nil
}

// moved puts the session's lanes to where its count and its time now belong.
func (s *session) moved() {
	for _, l := range s.lanes {
		l.tool.lanes.put(l)
	}
}

// choose sets next.
func (t *tenant) choose(limits *Limits) {
	t.next = nil
	if t.running >= limits.PerTenant {
		return
	}
	for _, wanted := range t.wanted {
		if wanted.running < limits.PerTool && (t.next == nil || wanted.lanes[0].before(t.next)) {
			t.next = wanted.lanes[0]
		}
	}
}

// without removes an element, which must be there, of a slice whose order means nothing.
func without[T comparable](all []T, one T) []T {
	i, last := slices.Index(all, one), len(all)-1
	all[i] = all[last]
	clear(all[last:])
	return all[:last]
}
