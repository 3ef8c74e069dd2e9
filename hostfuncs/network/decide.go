package network

import (
	"encoding/binary"
	"slices"
)

// allows reports whether a request may be sent. To which addresses, its reach says.
func (p *effective) allows(l *location, method string) bool {
	if p.denied(l, method) != nil {
		return false
	}
	for i := range p.permits {
		if p.permits[i].allows(l, method) {
			return true
		}
	}
	return false
}

// denied returns the line that takes the request away, whatever address it leads to.
func (p *effective) denied(l *location, method string) *denial {
	for i := range p.denials {
		if d := &p.denials[i]; len(d.reach) == 0 && d.matches(l, method) {
			return d
		}
	}
	return nil
}

// reach returns to which addresses an allowed request may go, and a key that is equal for
// equal ones.
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
