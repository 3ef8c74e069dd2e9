package runtime

import (
	"context"
	"slices"
	"time"

	"github.com/caisson-run/caisson/hostfuncs/calls"
	"github.com/caisson-run/caisson/hostfuncs/network"
	"github.com/caisson-run/caisson/hostfuncs/secrets"
	"github.com/caisson-run/caisson/hostfuncs/stream"
	"github.com/caisson-run/caisson/internal/journal"
	"github.com/caisson-run/caisson/internal/planning"
	"github.com/caisson-run/caisson/runtime/internal/abi"
	"github.com/caisson-run/caisson/tool"
)

// host holds the services that the guest of one call can request in addition to WASI. Emissions and questions about its
// own call are not listed among the host calls of the record, since they need no permission.
type host struct {
	session abi.Session
	stream  stream.Session
	more    []*journal.Journal // of the kinds that have a [permit.Enforcer]
	*permitted
}

// permitted is the part of host that needs permissions.
type permitted struct {
	network *network.Session
	secrets asking
	calls   *calls.Session
}

// prepareHost sets up the call's host. Its permitted part stays nil if the manifest requests none of it.
func (r *run) prepareHost() {
	t, h := r.tool, &r.host
	h.stream = *stream.Open(r.speech())
	s := &h.session
	s.Stream, s.About, s.MaxBody, s.Work = &h.stream, r.about, t.limits.HTTPBytes, t.runtime.work
	if t.permit.AsksHost {
		h.permitted = r.newPermitted()
		s.Network, s.Secrets, s.Tools = h.network, &h.secrets, h.calls
	}
}

// newPermitted returns the services for the guest that need permissions.
func (r *run) newPermitted() *permitted {
	t := r.tool
	p := &permitted{
		network: t.permit.Network.Open(network.Limits{Calls: t.limits.HTTPCalls, Bytes: t.limits.HTTPBytes}),
		secrets: asking{set: t.permit.Secrets, now: t.runtime.now},
	}
	if r.invocation.Host == nil {
		p.calls = t.permit.Calls.Open(nil, t.runtime.now)
	} else {
		p.calls = t.permit.Calls.Open(r.call, t.runtime.now)
	}
	return p
}

// open opens the call's enforcers and returns the context for the guest's host functions.
func (h *host) open(ctx context.Context, t *Tool) context.Context {
	h.more = nil
	for _, e := range t.permit.Enforcers {
		var asked *journal.Journal
		ctx, asked = e.Open(ctx, t.runtime.now)
		h.more = append(h.more, asked)
	}
	return ctx
}

const maxShown = 128 // bytes of a name that a record shows

// call makes a call on behalf of the guest, which waits for it in a host function. The context is
// the host function's. Secrets in the arguments are masked: the guest cannot read a secret, but a
// server may have sent it one in a form that response masking missed.
func (r *run) call(ctx context.Context, call tool.Call) (tool.Record, error) {
	arguments := []byte(call.Function.Arguments)
	masked, err := r.tool.permit.Secrets.MaskFirst(ctx, arguments, len(arguments))
	if err != nil {
		return tool.Record{}, err
	}
	call.Function.Arguments = string(masked)
	defer r.guest.Calling()()
	s := r.newNestedSlot(ctx)
	defer s.close()
	return r.invocation.Host.Call(planning.With(s.ctx, r.guest.Planned), call)
}

// close ends the guest's pending requests. It may be called more than once.
func (h *host) close() {
	if h.permitted != nil {
		h.network.Close()
	}
}

// makeNotes turns the denials so far into notes. The guest is about to read its input: the denied requests before then
// are those that a language runtime makes in every program.
func (r *run) makeNotes() {
	if r.noted { // a plug-in may read two inputs, that of WASI and its own
		return
	}
	r.noted, r.system.OnInput = true, nil
	if r.view != nil {
		r.view.MakeNotes()
	}
	r.system.Sockets.MakeNotes()
	for _, more := range r.host.more {
		more.MakeNotes()
	}
	if p := r.host.permitted; p != nil {
		p.network.Journal.MakeNotes()
		p.secrets.journal.MakeNotes()
		p.calls.Journal.MakeNotes()
	}
}

// collect adds the call's denials, host calls and usage to the run, and closes the host.
func (r *run) collect() {
	a, h := &r.answer, &r.host
	h.close()
	if r.replayed != nil {
		a.Denials, a.Unread = r.replayed.Denials, r.replayed.Unread
		return
	}
	a.Unread = r.system.OnInput != nil
	if r.view != nil {
		r.collectFiles()
	}
	a.Denials = append(a.Denials, r.system.Sockets.Denials()...)
	for _, more := range h.more {
		a.Denials = append(a.Denials, more.Denials()...)
		a.HostCalls, a.Usage.HostCalls = append(a.HostCalls, more.HostCalls()...), a.Usage.HostCalls+more.Count()
	}
	if h.permitted == nil {
		return
	}
	a.Secrets = r.tool.permit.Secrets
	requests, called, refused := h.network.Journal.HostCalls(), h.calls.Journal.HostCalls(), h.secrets.journal.Denials()
	reached := slices.ContainsFunc(slices.Concat(requests, called), func(c tool.HostCall) bool { return c.Allowed })
	// The last receipt is reported as the cause of the call's failure. A refused network request is
	// a likelier cause than the files that a language runtime looks for. So is a missing secret,
	// unless the guest then did without it.
	var notes, denied []tool.Denial
	for _, d := range h.network.Journal.Denials() {
		if d.Note {
			notes = append(notes, d)
		} else {
			denied = append(denied, d)
		}
	}
	if h.secrets.without && !reached {
		a.Denials = slices.Concat(notes, a.Denials, refused, denied, h.calls.Journal.Denials())
	} else {
		for i := range refused {
			refused[i].Note = true
		}
		a.Denials = slices.Concat(notes, refused, a.Denials, denied, h.calls.Journal.Denials())
	}
	a.Usage.HostCalls += h.secrets.journal.Count() + h.network.Journal.Count() + h.calls.Journal.Count()
	a.HostCalls = slices.Concat(a.HostCalls, h.secrets.journal.HostCalls(), requests, called)
	slices.SortStableFunc(a.HostCalls, func(a, b tool.HostCall) int { return a.Began.Compare(b.Began) })
	a.HostCalls = a.HostCalls[:min(len(a.HostCalls), tool.MaxHostCalls)]
}

// collectFiles adds the call's denials and host calls about files.
func (r *run) collectFiles() {
	a := &r.answer
	if a.Unread { // so a language runtime may have made the requests
		r.view.Journal.MakeNotes()
	}
	a.Denials = r.view.Journal.Denials()
	r.tool.permit.Explain(r.invocation.Arguments, a.Denials)
	a.HostCalls, a.Usage.HostCalls = r.view.Journal.HostCalls(), r.view.Journal.Count()
}

// asking answers one call's questions about the tool's secrets and records them. It serves one
// guest, which is single-threaded.
type asking struct {
	set     *secrets.Set
	now     func() time.Time
	journal journal.Journal
	without bool // the last answer was no
}

// Check implements [abi.Checker]. For a secret that the manifest requests but no grant gives, the
// guest gets the answer that it does not exist, and the operator gets a receipt.
func (a *asking) Check(name string) (bool, *tool.Denial) {
	call := tool.HostCall{Kind: "secrets.exists", Target: tool.Shown(name, maxShown), Began: a.now(), Allowed: true,
		Status: "ok"}
	entry, _ := a.journal.Begin(call)
	exists, denial := a.set.Check(name)
	switch {
	case denial != nil:
		call.Allowed, call.Status = false, "denied"
		a.journal.Deny(*denial, nil)
	case !exists:
		call.Status = "not there"
	}
	a.without = !exists
	call.Duration = a.now().Sub(call.Began)
	a.journal.Change(entry, func(listed *tool.HostCall) { *listed = call })
	if a.set.Requested(name) {
		return exists, nil
	}
	return exists, denial
}

// about returns the data that the guest may have about its call. It includes only the context values that the tool was
// granted and the files that the tool can open, and not the names of other ones. The caller's request is included as
// far as it concerns this tool.
func (r *run) about() abi.About {
	made := r.invocation
	about := abi.About{
		CallID: made.CallID, Tool: made.Tool, Tenant: made.Tenant, User: made.User, Session: made.Session, Trace: made.Trace,
		Request: made.Request,
		Context: map[string]string{}, Files: []tool.File{},
	}
	for name := range r.tool.permit.Context {
		if value, ok := made.Context[name]; ok {
			about.Context[name] = value
		}
	}
	for _, file := range made.Files {
		if r.tool.permit.Reaches(file.Path) {
			about.Files = append(about.Files, file)
		}
	}
	return about
}

// speech returns the options of the guest's stream. Like its result, the guest's emissions are limited to the tool's
// output limit and masked.
func (r *run) speech() stream.Options {
	secrets := r.tool.permit.Secrets
	options := stream.Options{Bytes: int64(r.tool.limits.Output)}
	if secrets.Longest() > 0 {
		options.Mask = func(ctx context.Context, text []byte) ([]byte,
			error) {
			return secrets.MaskFirst(ctx, text, len(text))
		}
	}
	if r.invocation.Host != nil {
		options.Emit = r.invocation.Host.Emit
	}
	return options
}

func (r *run) tellWithheld(ctx context.Context) {
	if n := r.host.stream.Withheld(); n > 0 {
		r.tool.runtime.logger.WarnContext(ctx, "emissions withheld, since they hold a secret", "call_id", r.invocation.CallID,
			"tool", r.tool.manifest.Name, "emissions", n)
	}
}
