package agents

// Dir is where the tests of this package look for a tenant's files.
func (s Store) Dir(tenant string) string { return s.dir(tenant) }
