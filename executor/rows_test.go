package executor_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// featureRow says which tests hold one of the product's features.
type featureRow struct {
	row, feature string
	tests        []string
}

func featureRows() []featureRow {
	return []featureRow{
		{"S0.5", "an unknown tool is a failed result and an error; a tool's own failure is not a crash", []string{"TestRowS05Failures", "TestRowS07Refusals"}},
		{"S0.6", "each call logs its start and its end; events go to subscribers", []string{"TestRowS06Log", "TestRowS06Subscribers", "TestEvents", "TestSlowSubscriber", "TestRepairsAreLogged"}},
		{"S0.7", "limits, rates, breakers and the check of arguments are in one place", []string{"TestRowS07Limits", "TestRowS07Rates", "TestRowS07Breaker", "TestRowS07Refusals", "TestFairness"}},
		{"S2.4", "calls run in parallel, a failure touches no other, results match by id", []string{"TestRowS24Parallel", "TestRowS315Failures", "TestModel"}},
		{"S2.5", "empty lists are [], never null", []string{"TestRowS25EmptyLists"}},
		{"S2.6", "invalid JSON is an error that a model can act on", []string{"TestRowS26InvalidJSON", "TestRowS2_6Custom", "TestRowS07Refusals", "FuzzArguments"}},
		{"S3.2", "the record's format, and how many calls run at a time", []string{"TestRowS32Record", "TestRowS32Wire", "TestRowS32Workers", "TestRowS24Parallel"}},
		{"S3.3", "context values are the host's; a model's own never wins", []string{"TestRowS33Forging", "TestRowS33FilledIn", "TestContextStaysHidden", "TestRepairDoesNotForge", "FuzzArguments"}},
		{"S3.4", "answers are used again for five minutes, or as long as is set, or not", []string{"TestRowS34Reuse", "TestReuseScopes", "TestReuseKey", "TestBarrierForgets", "TestBesideBarriers", "TestReuseBytes"}},
		{"S3.5", "duplicates in a batch are skipped, in a session answered from what is known", []string{"TestRowS35Duplicates", "TestRowS35Session", "TestDuplicatesOfFailure", "TestReadWriteRead"}},
		{"S3.6", "nothing is retried", []string{"TestRowS36NoRetry"}},
		{"S3.15", "each failure of a tool is caught and is a result", []string{"TestRowS315Failures", "TestNestedCallsCrash", "TestBrokenResolver", "TestRecorderFails"}},
		{"S4.2", "a tool gets the call's id, its files, the user and the request's trace", []string{"TestRowS4_2Context"}},
		{"S4.5", "tools run concurrently, and one speaks at a time", []string{"TestRowS4_5"}},
		{"S4.6", "hidden tools give no output events", []string{"TestRowS4_6"}},
		{"S4.8", "calls that the client answers, or that must be approved, are announced, and the batch goes on with what is submitted", []string{
			"TestRowS4_8Client", "TestRowS4_8Custom", "TestRowS4_8Approval", "TestRowS4_8TwoProcesses", "TestPauseOrder", "TestPauseModel", "TestResumeMistakes", "FuzzState",
		}},
	}
}

// TestEveryRowHasItsTests: the tests that the rows name are there, and each test that is
// named for a row is named by it.
func TestEveryRowHasItsTests(t *testing.T) {
	there := testsHere(t)
	named := map[string]string{}
	for _, row := range featureRows() {
		prefixes := []string{"TestRow" + strings.ReplaceAll(row.row, ".", ""), "TestRow" + strings.ReplaceAll(row.row, ".", "_")}
		own := false
		for _, name := range row.tests {
			assert.Contains(t, there, name, "%s: %s", row.row, row.feature)
			if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
				named[name] = row.row
				own = true
			}
		}
		assert.True(t, own, "%s has a test that is named for it", row.row)
	}
	for _, name := range there {
		if strings.HasPrefix(name, "TestRow") {
			assert.Contains(t, named, name)
		}
	}
}

// testsHere returns the names of this package's tests and fuzz tests.
func testsHere(t *testing.T) (names []string) {
	t.Helper()
	sources, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	require.NotEmpty(t, sources)
	set := token.NewFileSet()
	for _, source := range sources {
		syntax, err := parser.ParseFile(set, source, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, declared := range syntax.Decls {
			f, ok := declared.(*ast.FuncDecl)
			if ok && f.Recv == nil && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}
