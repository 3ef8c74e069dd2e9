package manifests

import "github.com/caisson-run/caisson/manifests/internal/keypath"

func (r *reader) secretGrant(n *node, at string) SecretGrant {
	g := SecretGrant{Binding: Binding{Origin: r.origin(n.at)}}
	fields := append([]field{
		{"name", secretExample, func(n *node, at string) { g.Name = r.secret(n, at) }},
		{"from", "from: and where the value is, such as {env: API_KEY}", func(n *node, at string) { g.From = r.secretSource(n, at) }},
		{"host", secretHostExample, func(n *node, at string) { g.Host = r.oneHost(n, at) }},
		{"ports", "", func(n *node, at string) { g.Ports = r.ports(n, at) }},
		{"schemes", "", func(n *node, at string) { g.Schemes = r.schemes(n, at) }},
	}, r.placeFields(&g.Place)...)
	fields = append(fields, field{"force", "", func(n *node, at string) { g.Force = r.boolean(n, at) }})
	if r.object(n, at, fields...) {
		r.checkPlace(n, at, false)
	}
	return g
}

func (r *reader) secretSource(n *node, at string) SecretSource {
	s := SecretSource{}
	read := r.object(n, at,
		field{"env", "", func(n *node, at string) { s.Env = r.setting(n, at) }},
		field{"file", "", func(n *node, at string) { s.File = r.hostPath(n, at) }},
		field{"age", "", func(n *node, at string) { s.Age = r.hostPath(n, at) }},
		field{"identity", "", func(n *node, at string) { s.Identity = r.hostPath(n, at) }},
		field{"key", "", func(n *node, at string) { s.Key = r.setting(n, at) }},
	)
	if read {
		r.checkSecretSource(n, at)
	}
	return s
}

func (r *reader) checkSecretSource(n *node, at string) {
	given := 0
	for _, key := range [...]string{"env", "file", "age"} {
		if n.get(key) != nil {
			given++
		}
	}
	if given != 1 {
		r.add(n.at, at, Conflict, "a secret's value comes from one place", "give exactly one of env, file and age")
	}
	encrypted := n.get("age") != nil
	if encrypted && n.get("identity") == nil {
		r.add(n.at, keypath.Key(at, "identity"), Missing, "the key identity is required with age", "add identity: and the file with the key to it")
	}
	for _, key := range [...]string{"identity", "key"} {
		if inner := keypath.Key(at, key); !encrypted && n.get(key) != nil {
			r.add(r.place(inner), inner, Conflict, key+" belongs to a file encrypted with age", "remove "+key+", or give age")
		}
	}
}
