package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/dialects"
)

// TestFindingsSayWhatToDo: in the words of the command line, and what was done is not asked for.
func TestFindingsSayWhatToDo(t *testing.T) {
	finding := dialects.Finding{
		Tool: "probe", Path: "properties.a.minLength", Severity: dialects.Weakened,
		Message: "the keyword is ignored", Fix: "say it in the description, as Adapt does",
	}
	assert.Equal(t, "probe: properties.a.minLength: the keyword is ignored (weakened); say it in the description, as --adapt does", describeFinding(finding))
	finding.Adapted = true
	assert.Equal(t, "probe: properties.a.minLength: the keyword is ignored (weakened); adapted: say it in the description", describeFinding(finding))
	finding.Path, finding.Adapted, finding.Fix = "", false, ""
	assert.Equal(t, "probe: the keyword is ignored (weakened)", describeFinding(finding))
}
