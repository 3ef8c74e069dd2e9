package network

import (
	"bytes"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"slices"

	"github.com/caisson-run/caisson/internal/hostfile"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
)

const maxAuthorities = 1 << 20 // bytes of a PEM file

type grant struct {
	rule
	manifests.Binding
	reach reach
	// elsewhere reports whether the grant is bound to another module. Such a grant has no
	// effect; it only explains decisions.
	elsewhere bool
}

// here returns the rule, or nil if the grant is bound to another module.
func (g *grant) here() *rule {
	if g.elsewhere {
		return nil
	}
	return &g.rule
}

// permit is the intersection of one request of the manifest and one grant.
type permit struct {
	*rule
	request, grant int // indexes
}

// effective is the permission of a tool: requests ∩ grants − denials. It is immutable once read.
type effective struct {
	tool     string
	requests []rule
	grants   []grant
	denials  []denial
	rules    permission.Rules     // of the requests, grants and denials
	outcomes []permission.Outcome // of the requests
	permits  []permit             // of all of them
	known    *ranges
	// isSpecial reports whether requests may differ in the addresses they may connect to.
	isSpecial bool
}

func at(origin string) string {
	if origin == "" {
		return ""
	}
	return " at " + origin
}

func readGrant(granted manifests.NetworkGrant, module string) (grant, error) {
	r, err := readRule(granted.NetworkPermission)
	if err != nil {
		return grant{}, err
	}
	g := grant{rule: r, Binding: granted.Binding}
	if g.elsewhere = !g.Holds(module); g.elsewhere {
		return g, nil // do not read files on behalf of this module
	}
	if g.reach.granted, err = readPrefixes(granted.Addresses); err != nil {
		return grant{}, err
	}
	if address := r.host.Address(); address.IsValid() {
		g.reach.exact = append(g.reach.exact, address)
	}
	if r.host.String() == "localhost" {
		g.reach.granted = append(g.reach.granted, netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))
	}
	if granted.Connect != "" {
		if g.reach.connect, err = permission.ParseEndpoint(granted.Connect); err != nil {
			return grant{}, err
		}
		g.reach.exact = append(g.reach.exact, g.reach.connect.Addr())
	}
	if granted.Authorities != "" {
		pem, err := readAuthorities(granted.Authorities)
		if err != nil {
			return grant{}, err
		}
		g.reach.authorities = [][]byte{pem}
	}
	return g, nil
}

func readAuthorities(name string) ([]byte, error) {
	file, info, err := hostfile.Open(name, hostfile.Follow)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info.Size() > maxAuthorities {
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxAuthorities)
	}
	pem, err := io.ReadAll(io.LimitReader(file, maxAuthorities))
	if err != nil {
		return nil, err
	}
	if !x509.NewCertPool().AppendCertsFromPEM(bytes.Clone(pem)) {
		return nil, fmt.Errorf("%s contains no PEM certificate", name)
	}
	return pem, nil
}

func (p *effective) decide(module string) {
	p.rules, p.permits = permission.Rules{Module: module}, nil
	for i := range p.requests {
		p.rules.Requests = append(p.rules.Requests, &p.requests[i])
	}
	for i := range p.grants {
		p.rules.Grants = append(p.rules.Grants, permission.Statement{Rule: &p.grants[i].rule, Binding: p.grants[i].Binding})
	}
	for i := range p.denials {
		denied := permission.Binding{Origin: p.denials[i].origin}
		p.rules.Denials = append(p.rules.Denials, permission.Statement{Rule: &p.denials[i], Binding: denied})
	}
	p.outcomes = p.rules.Decide()
	for i, outcome := range p.outcomes {
		for _, both := range outcome.Effective {
			p.permits = append(p.permits, permit{both.Rule.(*rule), i, both.Grant})
		}
	}
}

// reaches reports whether anything is left of the permission for requests to an origin.
func (p *effective) reaches(origin rule) bool {
	origin.methods, origin.everyMethod = nil, true
	return slices.ContainsFunc(p.requests, func(request rule) bool {
		narrowed, overlap := request.Intersect(&origin)
		return overlap && len(p.rules.DecideOne(narrowed).Effective) > 0
	})
}

// allows reports whether a request may be sent. The addresses it may be sent to are its reach.
func (p *effective) allows(l *location, method string) bool {
	if p.denialOf(l, method) != nil {
		return false
	}
	for i := range p.permits {
		if p.permits[i].allows(l, method) {
			return true
		}
	}
	return false
}

// denialOf returns the denial that matches the request at any address, or nil.
func (p *effective) denialOf(l *location, method string) *denial {
	for i := range p.denials {
		if d := &p.denials[i]; len(d.reach) == 0 && d.matches(l, method) {
			return d
		}
	}
	return nil
}

// reach returns the addresses that an allowed request may connect to, and a key that is equal for equal reaches.
func (p *effective) reach(l *location, method string) (*reach, string) {
	if !p.isSpecial {
		return &reach{}, ""
	}
	all, key := &reach{}, []byte(nil)
	var seen []int
	for i := range p.permits {
		permit := &p.permits[i]
		granted := &p.grants[permit.grant].reach
		if granted.isPublic() || slices.Contains(seen, permit.grant) || !permit.allows(l, method) {
			continue
		}
		seen = append(seen, permit.grant)
		all.add(granted)
		key = binary.AppendUvarint(append(key, '+'), uint64(permit.grant))
	}
	for i := range p.denials {
		if d := &p.denials[i]; len(d.reach) > 0 && d.matches(l, method) {
			all.denied = append(all.denied, deniedReach{d.reach, d.origin})
			key = binary.AppendUvarint(append(key, '-'), uint64(i))
		}
	}
	return all, string(key)
}
