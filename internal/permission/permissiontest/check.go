// Package permissiontest checks a kind of permission against a plain reference: whatever random requests, grants and
// denials say, [permission.Rules.Decide] allows what one asks for, another gives, and none takes away.
package permissiontest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/caisson-run/caisson/internal/permission"
)

// Line is a rule with its meaning by the reference, which should not be the rule's own code.
type Line[U any] struct {
	Rule    permission.Rule
	Matches func(use U) bool
	Text    string // for failures
}

// Sample has the input for the check of a kind. Each field but Partial is required.
type Sample[U any] struct {
	// Partial says that denials can take a part of a rule, so that the kind asks them at each use. For any other kind, the
	// effective permits are all that is allowed.
	Partial bool
	// Request, Grant and Denial draw lines. They should overlap often.
	Request, Grant, Denial func(random *rand.Rand) Line[U]
	// Uses are the uses to try, and Matches reports whether the enforcing code takes one for a use of a rule that Decide
	// returned.
	Uses    []U
	Matches func(rule permission.Rule, use U) bool
}

const module = "this"

// Check draws and decides some hundred times. It may be called by fuzz targets with their seed.
func Check[U any](t testing.TB, sample Sample[U], seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		requests, asked := draw(random, sample.Request, 1+random.IntN(2), false)
		grants, given := draw(random, sample.Grant, random.IntN(4), true)
		denials, taken := draw(random, sample.Denial, random.IntN(3), false)
		world := fmt.Sprintf("requests %s, grants %s, denials %s", texts(asked, requests), texts(given, grants),
			texts(taken, denials))
		rules := permission.Rules{Grants: grants, Denials: denials, Module: module}
		for _, request := range requests {
			rules.Requests = append(rules.Requests, request.Rule)
		}
		outcomes := rules.Decide()
		if len(outcomes) != len(requests) {
			t.Fatalf("%d outcomes of %s", len(outcomes), world)
		}
		for i, o := range outcomes {
			for _, use := range sample.Uses {
				if problem := wrong(sample, o, asked[i], given, grants, taken, use); problem != "" {
					t.Fatalf("request %d: %s, for the use %+v of %s", i, problem, use, world)
				}
			}
		}
	}
}

func draw[U any](
	random *rand.Rand, line func(*rand.Rand) Line[U], n int, bound bool,
) (statements []permission.Statement, lines []Line[U]) {
	for range n {
		l := line(random)
		s := permission.Statement{Rule: l.Rule}
		if bound {
			s.SHA256 = []string{"", "", module, "another"}[random.IntN(4)]
		}
		statements, lines = append(statements, s), append(lines, l)
	}
	return statements, lines
}

func texts[U any](lines []Line[U], statements []permission.Statement) []string {
	var all []string
	for i, l := range lines {
		all = append(all, l.Text+" "+statements[i].SHA256)
	}
	return all
}

// wrong says in what an outcome differs from the reference for one use, or "".
func wrong[U any](
	sample Sample[U], o permission.Outcome, asked Line[U], given []Line[U], grants []permission.Statement, taken []Line[U],
	use U,
) string {
	among := func(permits []permission.Permit) bool {
		return slices.ContainsFunc(permits, func(p permission.Permit) bool { return sample.Matches(p.Rule, use) })
	}
	granted := false
	for i, line := range given {
		both := asked.Matches(use) && line.Matches(use)
		holds := grants[i].SHA256 == "" || grants[i].SHA256 == module
		at := slices.IndexFunc(o.Granted, func(p permission.Permit) bool { return p.Grant == i })
		switch {
		case !holds && at >= 0:
			return fmt.Sprintf("grant %d is for another module", i)
		case !holds && both && !slices.Contains(o.Elsewhere, i):
			return fmt.Sprintf("grant %d for another module is not named", i)
		case holds && both != (at >= 0 && sample.Matches(o.Granted[at].Rule, use)):
			return fmt.Sprintf("grant %d gives %t, and by the reference %t", i, !both, both)
		}
		granted = granted || holds && both
	}
	denied := false
	for i, line := range taken {
		if asked.Matches(use) && line.Matches(use) && !slices.Contains(o.Cut, i) {
			return fmt.Sprintf("denial %d is not named", i)
		}
		denied = denied || line.Matches(use)
	}
	switch {
	case among(o.Granted) != granted:
		return fmt.Sprintf("granted is %t", !granted)
	case (among(o.Effective) && !(sample.Partial && denied)) != (granted && !denied):
		return fmt.Sprintf("allowed is %t", !(granted && !denied))
	case among(o.Effective) && !granted:
		return "effective, and not granted"
	}
	for _, p := range o.Granted {
		if sample.Matches(p.Rule, use) && !denied &&
			!slices.ContainsFunc(o.Effective, func(left permission.Permit) bool { return left.Grant == p.Grant }) {
			return fmt.Sprintf("grant %d was taken away, and no denial is about this use", p.Grant)
		}
	}
	for _, i := range o.Taken {
		if !slices.Contains(o.Cut, i) {
			return fmt.Sprintf("denial %d took something away and is not named", i)
		}
	}
	return ""
}
