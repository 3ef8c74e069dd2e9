package manifests

// PolicyAsk has calls of the tools that it names wait for approval, whatever their manifests say
// and whatever approves of them.
type PolicyAsk struct {
	Origin string // where it is written
	Tool   string // a name, or a glob as in path.Match
}

// PolicyApproval approves of all calls of the tools that it names, although they are destructive.
type PolicyApproval struct {
	Binding
	// Tools are names, or globs as in path.Match. There is at least one.
	Tools []string
	// Source is as in [Grant].
	Source string
}

// addApprovals adds what the policy says of approving a tool's calls.
func (p *Policy) addApprovals(given *Grants, tool, source string) {
	for _, ask := range p.Ask {
		if isNamed(ask.Tool, tool) {
			given.Ask = append(given.Ask, ask.Origin)
		}
	}
	for _, approval := range p.Approve {
		if concerns(approval.Tools, approval.Source, tool, source) {
			given.Approved = append(given.Approved, ApprovalGrant{approval.Binding})
		}
	}
}
