// Package clock tells guests the time in the zones that they may know.
package clock

import (
	"context"
	"time"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/journal"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
	"github.com/caisson-run/caisson/tool"
)

// Module is the host module, as guests name it.
const Module = "caisson:clock@1"

const kind permission.Kind = "clock"

// Permission is request ∩ grant − deny: the zones of one tool. It is immutable.
type Permission struct {
	tool      string
	allowed   map[string]bool
	decisions []tool.Decision
}

// New decides what a tool may know. The module is its digest; empty where that is not known.
func New(m *manifests.Manifest, grants manifests.Grants, module string) *Permission {
	p := &Permission{tool: m.Name, allowed: map[string]bool{}}
	var requests, given, denials []permission.Statement
	for _, zone := range m.Permissions.Clock {
		requests = append(requests, permission.Statement{Rule: permission.NewName(kind, zone)})
	}
	for _, grant := range grants.Clock {
		given = append(given, permission.Statement{Rule: permission.NewName(kind, grant.Zone), Origin: grant.Origin, SHA256: grant.SHA256})
	}
	for _, deny := range grants.Deny {
		denials = append(denials, permission.Statement{Rule: permission.NewName(kind, deny.Clock), Origin: deny.Origin})
	}
	for i, outcome := range permission.Decide(requests, given, denials, module) {
		zone := m.Permissions.Clock[i]
		d := tool.Decision{Permission: string(kind), Requested: zone, Reason: "no grant names it", Allow: p.allow(zone)}
		switch {
		case len(outcome.Effective) > 0:
			p.allowed[zone] = true
			d.Effective, d.Reason, d.Allow = zone, "granted", tool.Allow{}
		case len(outcome.Taken) > 0:
			d.Reason, d.Allow = "denied by "+denials[outcome.Taken[0]].Origin, tool.Allow{}
		}
		p.decisions = append(p.decisions, d)
	}
	return p
}

func (p *Permission) allow(zone string) tool.Allow {
	return tool.Allow{Grant: manifests.Grant{Tools: []string{p.tool}, Clock: []manifests.ClockGrant{{Zone: zone}}}.Rule()}
}

// Decisions returns what became of each request.
func (p *Permission) Decisions() []tool.Decision { return p.decisions }

// session is what one guest asks.
type session struct {
	permission *Permission
	journal    journal.Journal
	now        func() time.Time
}

type key struct{}

// Open begins one call.
func (p *Permission) Open(ctx context.Context, now func() time.Time) (context.Context, *journal.Journal) {
	s := &session{permission: p, now: now}
	return context.WithValue(ctx, key{}, s), &s.journal
}

// Functions returns hour(zone), which is -1 where the guest may not know.
func Functions() []hostfuncs.Function {
	return []hostfuncs.Function{{
		Module: Module, Name: "hour", Params: []hostfuncs.ValueType{hostfuncs.I32, hostfuncs.I32}, Results: []hostfuncs.ValueType{hostfuncs.I64},
		Call: func(ctx context.Context, memory hostfuncs.Memory, stack []uint64) error {
			zone, _ := memory.View(uint32(stack[0]), uint32(stack[1]))
			stack[0] = uint64(ctx.Value(key{}).(*session).hour(string(zone)))
			return nil
		},
	}}
}

func (s *session) hour(zone string) int64 {
	call := tool.HostCall{Kind: "clock.hour", Target: tool.Shown(zone, 64), Began: s.now(), Status: string(tool.Denied)}
	location, err := time.LoadLocation(zone)
	if call.Allowed = err == nil && s.permission.allowed[zone]; call.Allowed {
		call.Status = "ok"
	}
	s.journal.Begin(call)
	if !call.Allowed {
		s.journal.Deny(tool.Denial{Permission: string(kind), Value: call.Target, Rule: "no grant names it", Allow: s.permission.allow(zone)}, nil)
		return -1
	}
	return int64(s.now().In(location).Hour())
}
