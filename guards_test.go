//go:build faults && linux

package caisson_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/overlay"
)

// guardFault takes a guard out.
type guardFault struct {
	name   string
	pkg    string // of the attack's test
	attack string // which works then: a test, and those of its subtests that are meant
	edits  []overlay.Edit
	hangs  bool // the attack keeps the test from ending
}

// guardFaults are the controls of attacks whose tests have none, or one that does not show what the
// guard itself is for.
var guardFaults = []guardFault{
	{name: "a directory that is too full is counted no further than it may be filled", pkg: "hostfuncs/files", attack: "TestRemovalsDoNotWalkAgain",
		edits: in("hostfuncs/files/tracker.go", "bound: quota.doubled()", "bound: quota")},
	{name: "waiting for others has no end", pkg: "hostfuncs/files", attack: "TestWaitingForOthersEnds", hangs: true,
		edits: in("hostfuncs/files/tracker.go", "	case <-ctx.Done():\n		return ctx.Err()\n", "")},
	{name: "a walk goes on when its call has ended", pkg: "hostfuncs/files", attack: "TestAttackLongLooks/a_walk_before_a_change",
		edits: in("hostfuncs/files/tracker.go", "if err := w.ctx.Err(); err != nil {", "if err := w.ctx.Err(); err != nil && false {")},
	{name: "a listing goes on when its call has ended", pkg: "hostfuncs/files", attack: "TestAttackLongLooks/a_listing",
		edits: in("hostfuncs/files/dir.go", "if err := p.view.ctx.Err(); err != nil {", "if err := p.view.ctx.Err(); err != nil && false {")},

	{name: "a validation goes on when its context has ended", pkg: "manifests/schema", attack: "TestValidationsEndWithTheirContext",
		edits: unlooked},
	{name: "a result is checked when its call has ended", pkg: "runtime", attack: "TestAttackResultsThatTakeLongToCheck/a_match_of_a_misfit/16",
		edits: unlooked},
	{name: "a long match is made in one go", pkg: "manifests/schema", attack: "TestValidationsLookAtTheirContextOften/a_match",
		edits: in("manifests/schema/pattern.go", "if cost <= shortMatch {", "if cost >= 0 {")},
	{name: "a tool's arguments are checked when its caller has ended", pkg: "executor", attack: "TestAttackArgumentsThatTakeLongToCheck/that_are_short/16",
		edits: unlooked},
	{name: "nobody watches a guest while the host plans its call", pkg: "runtime", attack: "TestGuestsAreWatchedWhileTheHostPlans/the_host_plans",
		edits: in("runtime/deadline.go", "g.calls.Add(-1)", "g.calls.Add(0)")},
	{name: "nobody says that the host plans a call", pkg: "executor", attack: "TestPlanningIsSaid",
		edits: in("executor/host.go", "	defer planning.Begin(ctx)()\n", "	_ = planning.Begin\n")},

	{name: "answers are masked when their call has ended", pkg: "hostfuncs/network", attack: "TestAttackAnswersThatTakeLongToMask",
		edits: in("hostfuncs/network/body.go", "body, err = e.client.secrets.MaskFirst(e.ctx, text, kept)", "body = e.client.secrets.Mask(text[:kept])")},
	{name: "however many long texts there are, all are masked at once", pkg: "hostfuncs/secrets", attack: "TestAttackManyLongTexts",
		edits: in("hostfuncs/secrets/set.go", "if len(text) <= stretch {", "if len(text) >= 0 {")},

	{name: "secrets are put into bodies of any length", pkg: "hostfuncs/secrets", attack: "TestAttackLongBodies",
		edits: in("hostfuncs/secrets/inject.go", "case len(body) > maxFilled:", "case false:")},
	{name: "secrets are put into as many bodies at a time as there are", pkg: "hostfuncs/secrets", attack: "TestAttackLongBodies",
		edits: in("hostfuncs/secrets/inject.go", "enter(request.Context(), body)", "enter(request.Context(), nil)")},
	{name: "bodies are copied at once", pkg: "runtime/internal/abi", attack: "TestBodiesAreCopiedWhileThereIsTime",
		edits: in("runtime/internal/abi/functions.go", "at > 0 && c.ctx.Err() != nil", "false")},
	{name: "an array is read for each template", pkg: "manifests", attack: "TestAttackArrayInManyTemplates",
		edits: in("manifests/arguments.go", "		e.lists[part.param] = values\n", "")},
	{name: "a result has parts without end", pkg: "runtime", attack: "TestAttackManyParts",
		edits: in("runtime/result.go", "Values: maxParts + 1", "Values: len(list) + 1")},

	{name: "whatever lies in an entry's place is read", pkg: "runtime/internal/engine", attack: "TestAttackIrregularEntries/endless_device", hangs: true,
		edits: unchecked},
	{name: "files of any size are read", pkg: "runtime/internal/engine", attack: "TestAttackIrregularEntries/a_terabyte", hangs: true,
		edits: unchecked},
	{name: "the state folder may be anybody's", pkg: "internal/folder", attack: "TestAttackFolderOfOthers",
		edits: in("internal/hostfile/system_unix.go", "int(status.Uid) != os.Geteuid()", "int(status.Uid) != os.Geteuid() && false")},

	{name: "grants for other modules hold", pkg: "runtime", attack: "TestEveryKindOfGrantIsBoundToAModule",
		edits: in("manifests/permission/rule.go", "return s.SHA256 == \"\" || module != \"\" && s.SHA256 == module", "return true")},
	{name: "denials take nothing away", pkg: "runtime", attack: "TestDecideFiles",
		edits: in("manifests/permission/decide.go", "o.Effective = slices.DeleteFunc(o.Effective, covered)", "")},
	{name: "what is granted was not asked for", pkg: "hostfuncs/secrets", attack: "TestDecideSecrets",
		edits: in("manifests/permission/decide.go", "both, overlap := request.Intersect(grant.Rule)", "both, overlap := grant.Rule, true")},
	{name: "letters that are not ASCII have a case", pkg: "manifests/permission", attack: "TestParseHost",
		edits: in("manifests/permission/host.go", "strings.Map(lowerASCII, text)", "strings.ToLower(text)")},

	{name: "names of headers are compared without regard to case alone", pkg: "hostfuncs/network", attack: "TestAttackHeaderInAnotherSpelling",
		edits: in("manifests/text.go", "return '-'", "return r")},

	masking("the value as it is", "{reader: plain{}}, ", "", "/plain"),
	masking("percent-encoding", "{reader: escapes{'%', percent}}, ", "", "/percent"),
	masking("the escapes of JSON", "{reader: escapes{'\\\\', jsonEscape}}, ", "", "/JSON"),
	masking("characters that take two escapes in JSON", "pair != utf8.RuneError {", "pair == 0 {", "beyond_ASCII/JSON"),
	masking("Base64", "{reader: newBase64()}, ", "", "/Base64"),
	masking("Base64 for URLs", "	a.characters['-'], a.characters['_'] = '+', '/'\n", "", "/Base64_for_URLs"),
	masking("Base64 behind other bytes", "before == 0 || 8*before%a.bits != 0;", "before == 0;", "/Base64_behind_1_bytes"),
	masking("Base64 in lines", "whiteSpace, base64.", "\"\", base64.", "/Base64_in_lines"),
	masking("hexadecimal", ", {reader: newHexadecimal()}}", "}", "/hexadecimal"),
	masking("hexadecimal in upper case", "a.characters[c] = c | 0x20", "_ = c", "/hexadecimal,_upper_case"),
	masking("hexadecimal with separators", "whiteSpace+\":-\"", "whiteSpace", "/hexadecimal_with"),
	{name: "more is masked than is promised", pkg: "hostfuncs/secrets", attack: "TestSeparatorsAreBounded",
		edits: in("hostfuncs/secrets/forms.go", "case c == separator && w.between < MaxBetween:", "case c == separator:")},

	{name: "elements need not fit their table", pkg: "runtime/internal/engine", attack: "TestElementsThatDoNotFit",
		edits: in("runtime/internal/wasm/validate_data.go", "; end > size {", "; end > size && false {")},

	{name: "what has ended is not printed when something fails", pkg: "cmd/caisson", attack: "TestScripts/full",
		edits: in("cmd/caisson/keep.go", "if v.showRecords(ended) != nil {", "if false {")},
	{name: "records are lost with standard output", pkg: "cmd/caisson", attack: "TestSalvage",
		edits: in("cmd/caisson/keep.go", "		v.o.printLost(ended.Records)\n", "")},
	{name: "the record of a single call is lost with standard output", pkg: "cmd/caisson", attack: "TestScripts/full",
		edits: in("cmd/caisson/call.go", "		o.printLost(report.Records)\n", "")},

	{name: "batches are kept where tools may write", pkg: "cmd/caisson", attack: "TestScripts/approvals",
		edits: in("cmd/caisson/batch.go", "if found {", "if found && false {")},
	{name: "fingerprints are of no call", pkg: "executor", attack: "TestAttackExchangedCalls/in_two_batches",
		edits: in("executor/approvals.go", "\"caisson-approval/v3\", callID,", "\"caisson-approval/v3\", \"\",")},
	{name: "fingerprints are of any order", pkg: "executor", attack: "TestAttackReorderedCalls",
		edits: in("executor/approvals.go", "o.before[callID] = o.last", "o.before[callID] = \"\"")},
	{name: "a fingerprint is of the ids of all calls before, one by one", pkg: "executor", attack: "TestPlanningIsLinear",
		edits: in("executor/approvals.go", "o.last = digestOf(", "o.last += digestOf(")},
	{name: "an approval names a call, and no fingerprint", pkg: "cmd/caisson", attack: "TestDecisionsNameOneCall",
		edits: in("cmd/caisson/batch_resume.go", "strings.HasPrefix(a.Fingerprint, fingerprint)", "strings.HasPrefix(fingerprint, \"\")")},
	{name: "a batch is claimed in the state folder alone", pkg: "internal/batches", attack: "TestAFileIsClaimedOnceWhateverRemembersIt",
		edits: in("internal/batches/place.go", "take(here, marker); !ours || err != nil {", "true, error(nil); !ours || err != nil {")},

	{name: "JSON is printed as it is", pkg: "cmd/caisson", attack: "TestAttackInvisibleJSON",
		edits: in("cmd/caisson/input.go", "return visible(bytes.TrimRight(b.Bytes(), \"\\n\")), nil", "return bytes.TrimRight(b.Bytes(), \"\\n\"), nil")},
	{name: "events are printed as they are", pkg: "cmd/caisson", attack: "TestScripts/approvals",
		edits: in("cmd/caisson/batch_view.go", "	event.Data = visible(event.Data)\n", "")},
	{name: "a person is shown arguments as they are", pkg: "examples/agent", attack: "TestApprovalsShowWhatIsApproved",
		edits: in("examples/agent/visible.go", "return escaped(text, tool.Deceives)", "return text")},
	{name: "a capital I is no l", pkg: "registry", attack: "TestAttackLookAlikeIsLoaded",
		edits: in("tool/names.go", "if c == 'I' {", "if false {")},
	{name: "look-alikes are told apart", pkg: "registry", attack: "TestAttackLookAlikeIsLoaded",
		edits: in("tool/names.go", "	one, other := spelled(a), spelled(b)\n", "	one, other := []byte(a), []byte(b)\n")},

	{name: "approvals are for whatever a tool may call", pkg: "executor", attack: "TestAttackReplacedCallee/before_it_runs",
		edits: append(in("executor/resume.go", " && c.wasShown(s):", ":"), unbound...)},
	{name: "approvals for a session are for whatever a tool may call", pkg: "executor", attack: "TestAttackReplacedCallee/after_it_was_approved_for_the_session",
		edits: unbound},
	{name: "a tool may be replaced while what calls it runs", pkg: "executor", attack: "TestAttackReplacedCallee/while_it_runs",
		edits: in("executor/approvals.go", "&& identity == approved {", "&& identity != \"\" || approved == \"\" {")},

	{name: "files are read whatever their size", pkg: "internal/batches", attack: "TestAttackLargeFile",
		edits: in("internal/folder/folder.go", "if info.Size() > most {", "if info.Size() > most && false {")},
	{name: "states are read whatever their length", pkg: "executor", attack: "TestAttackLargeState",
		edits: in("executor/state.go", "if bytes > MaxStateBytes {", "if bytes < 0 {")},
}

// in is one edit of a file.
func in(file, old, without string) []overlay.Edit {
	return []overlay.Edit{{File: file, Old: old, New: without}}
}

// unlooked has a validation not look at its context, once the value is decoded.
var unlooked = in("manifests/schema/meter.go", "if err := ended(m.ctx); err != nil {", "if err := ended(m.ctx); err != nil && false {")

// unchecked opens whatever is in the place of a file of an entry, and reads it to its end.
var unchecked = []overlay.Edit{
	{File: "runtime/internal/engine/store_files.go",
		Old: "(*os.File, error) {\n	f, info, err := hostfile.Open(file, hostfile.NoFollow)\n", New: "(*os.File, error) {\n	f, err := os.Open(file)\n"},
	{File: "runtime/internal/engine/store_files.go", Old: "if info.Size() != b.Bytes {", New: "if info, err := f.Stat(); err != nil {"},
	{File: "runtime/internal/engine/store_files.go", Old: "digestOf(io.LimitReader(f, b.Bytes))", New: "digestOf(f)"},
}

// unbound leaves the tools that a tool may call out of what an approval of it is bound to.
var unbound = in("executor/approvals.go", "string(reached), ", "")

// masking does not find one form of a secret.
func masking(form, old, without, encoder string) guardFault {
	return guardFault{name: "not masked: " + form, pkg: "hostfuncs/secrets", attack: "TestMaskFindsEveryForm/" + encoder,
		edits: in("hostfuncs/secrets/forms.go", old, without)}
}

// TestFaultsOfGuards: without its guard an attack works, so that its test fails. With all guards it passes.
func TestFaultsOfGuards(t *testing.T) {
	run := func(t *testing.T, f guardFault, overlaid ...string) (string, error) {
		var levels []string // names of subtests may have any part of one
		for i, level := range strings.Split(f.attack, "/") {
			if i == 0 {
				level = "^" + level + "$"
			}
			levels = append(levels, level)
		}
		arguments := append([]string{"test", "-tags=slow", "-vet=off", "-timeout=30s", "-run", strings.Join(levels, "/")}, overlaid...)
		out, err := exec.CommandContext(t.Context(), "go", append(arguments, "./"+f.pkg)...).CombinedOutput()
		return string(out), err
	}
	for _, f := range guardFaults {
		t.Run(f.name, func(t *testing.T) {
			out, err := run(t, f)
			require.NoError(t, err, out)
			require.NotContains(t, out, "no tests to run")

			path, err := overlay.Write(t.TempDir(), ".", f.edits)
			require.NoError(t, err)
			overlaid := []string{"-overlay", path}
			if f.hangs {
				overlaid = append(overlaid, "-timeout=5s")
			}
			for range 3 { // an attack on somebody's time is not as quick as its victim on every machine
				if out, err = run(t, f, overlaid...); err != nil {
					break
				}
			}
			require.Error(t, err)
			test, _, _ := strings.Cut(f.attack, "/")
			if f.hangs {
				assert.Contains(t, out, "panic: test timed out")
				assert.Contains(t, out, "\t"+test)
				return
			}
			assert.Contains(t, out, "--- FAIL: "+test)
			assert.NotContains(t, out, "panic:")
		})
	}
}
