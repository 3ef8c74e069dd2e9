package manifests

// What the tests of this package's API also look at.

var (
	ErrArgs     = errArgs
	ErrQuantity = errQuantity
	ErrTemplate = errTemplate
)

func (p Profile) Extend(name string, limits Limits) Profile { return p.extend(name, limits) }
