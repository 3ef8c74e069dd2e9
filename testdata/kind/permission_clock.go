package manifests

import "slices"

// ClockGrant lets tools know the time in a zone.
type ClockGrant struct {
	Binding
	Zone string
}

func clock() kind {
	return kind{
		name: "clock",
		asks: &asking{
			key:   "clock",
			read:  func(r *reader, n *node, at string, p *Permissions) { p.Clock = distinctOf(r, maxList, r.name)(n, at) },
			write: func(p Permissions) *node { return listed(p.Clock, textOf) },
		},
		gives: grants("clock",
			func(g *Grants) *[]ClockGrant { return &g.Clock },
			func(r *reader, n *node, at string) []ClockGrant {
				return namedGrants(r, n, at, maxList, r.name, func(b Binding, zone string) ClockGrant { return ClockGrant{b, zone} })
			},
			listing(func(c ClockGrant) *node { return textOf(c.Zone) }), func(c ClockGrant) Element { return zoneElement(c.Zone) }),
		takes: &taking{
			key:  "clock",
			read: func(r *reader, n *node, at string, d *Deny) { d.Clock = r.name(n, at) },
			say:  func(d Deny) (Element, bool) { return zoneElement(d.Clock), d.Clock != "" },
		},
	}
}

func zoneElement(zone string) Element {
	return Element{
		name:  zone,
		About: "the time in " + zone, Fix: "write a zone that a manifest asks for, or remove it",
		canonical: func() (any, error) { return zone, nil },
		asked:     func(m *Manifest) bool { return slices.Contains(m.Permissions.Clock, zone) },
	}
}
