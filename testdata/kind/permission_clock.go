package manifests

func clock() kind {
	return kind{
		name:  "clock",
		asks:  asksNames("clock", func(p *Permissions) *[]string { return &p.Clock }, (*reader).name),
		gives: givesNames("clock", func(g *Grants) *[]NameGrant { return &g.Clock }, maxList, (*reader).name, zoneElement),
		takes: takesName("clock", func(d *Deny) *string { return &d.Clock }, (*reader).name, zoneElement),
	}
}

func zoneElement(zone string) Element {
	asked := func(m *Manifest) []string { return m.Permissions.Clock }
	return namedElement("the time in ", zone, "write a zone that a manifest asks for, or remove it", asked)
}
