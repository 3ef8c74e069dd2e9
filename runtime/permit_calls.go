package runtime

import (
	"errors"
	"fmt"

	"github.com/caisson-run/caisson/hostfuncs/calls"
	"github.com/caisson-run/caisson/manifests"
)

func (p *permit) decideCalls(m *manifests.Manifest, grants manifests.Grants) (err error) {
	options := calls.Options{Tool: m.Name, Module: p.module, Requests: m.Permissions.Tools, Grants: grants.Calls}
	for _, deny := range grants.Deny {
		if deny.Call != "" {
			options.Deny = append(options.Deny, calls.Denied{Origin: deny.Origin, Tool: deny.Call})
		}
	}
	if p.calls, err = calls.New(options); err != nil {
		var wrong *calls.Error
		if errors.As(err, &wrong) {
			return fmt.Errorf("runtime: %s", wrong.Message)
		}
		return fmt.Errorf("runtime: %w", err)
	}
	p.decisions = append(p.decisions, p.calls.Decisions()...)
	return nil
}
