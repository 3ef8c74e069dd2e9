package view

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/internal/check"
	"github.com/caisson-run/caisson/manifests"
)

func TestReport(t *testing.T) {
	problem := manifests.Problem{File: "a.yaml", Line: 2, Column: 3, Path: "name", Message: "is\nwrong", Fix: "correct it"}
	whole := manifests.Problem{File: "b.yaml", Line: 1, Column: 1, Message: "is empty", Fix: "fill it"}
	for name, test := range map[string]struct {
		report check.Report
		quiet  bool
		want   string
	}{
		"nothing":      {check.Report{Valid: true}, false, "0 manifests are valid\n"},
		"a manifest":   {check.Report{Valid: true, Files: 1}, false, "1 manifest is valid\n"},
		"a policy":     {check.Report{Valid: true, Policies: 1}, false, "1 policy is valid\n"},
		"both":         {check.Report{Valid: true, Files: 2, Policies: 2}, false, "2 manifests are valid, 2 policies are valid\n"},
		"no summary":   {check.Report{Valid: true, Files: 2}, true, ""},
		"problems":     {check.Report{Problems: []manifests.Problem{problem, problem, whole}}, true, "a.yaml:2:3: name: is\\nwrong\n  fix: correct it\na.yaml:2:3: name: is\\nwrong\n  fix: correct it\nb.yaml:1:1: is empty\n  fix: fill it\n"},
		"a problem":    {check.Report{Files: 3, Problems: []manifests.Problem{whole}}, false, "b.yaml:1:1: is empty\n  fix: fill it\n1 problem in 1 file\n"},
		"a warning":    {check.Report{Valid: true, Files: 1, Warnings: []manifests.Problem{whole}}, false, "b.yaml:1:1: warning: is empty\n  fix: fill it\n1 manifest is valid, 1 warning\n"},
		"one too many": {check.Report{Files: 1, Warnings: []manifests.Problem{whole}}, false, "b.yaml:1:1: warning: is empty\n  fix: fill it\n1 warning, and --strict allows none\n"},
		"a translation": {
			check.Report{Valid: true, Files: 1, Translated: []check.Translation{{File: "plugin.json", Tools: []string{"a", "b"}}}}, false,
			"plugin.json: a manifest of Extism, of which Caisson makes a, b\n1 manifest is valid\n",
		},
	} {
		assert.Equal(t, test.want, Report(test.report, test.quiet), name)
	}
}
