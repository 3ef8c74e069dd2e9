package calls

import "github.com/caisson-run/caisson/tool"

// What the tests of this package's API also look at.

func (p *Permission) Check(name string) *tool.Denial { return p.check(name) }
