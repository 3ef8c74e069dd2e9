package manifests

// What the tests of this package's API also look at.

var ErrQuantity = errQuantity

func (p Profile) Extend(name string, limits Limits) Profile { return p.extend(name, limits) }
