package schema

// TypesOf returns the types that a schema and what it brings along allow, and keeps them in known. A nil schema allows
// all. Of a schema that is inside itself it may return more.
func TypesOf(n *Node, known map[*Node]Types) Types {
	if n == nil {
		return AnyType
	}
	if types, ok := known[n]; ok {
		return types
	}
	known[n] = AnyType
	types := n.Types
	for _, also := range n.Also {
		types &= TypesOf(also, known)
	}
	for _, u := range n.Unions {
		types &= u.TypesOf(known)
	}
	known[n] = types
	return types
}

// TypesOf returns the types that the branches of a union allow, as the function does.
func (u Union) TypesOf(known map[*Node]Types) (types Types) {
	for _, branch := range u.Branches {
		types |= TypesOf(branch, known)
	}
	return types
}
