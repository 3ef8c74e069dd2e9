package runtime

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unguarded says what a call would get that resumed another tenant's start, were it not
// refused. It is how a test shows that there is something to guard against.
type unguarded string

const (
	leaks  unguarded = "the call tells what the other tenant's start saw"
	loses  unguarded = "the call lacks what its own start would have done"
	equals unguarded = "the call is as it would be anyway" // refused because it needs no exception
	never  unguarded = "there is nothing to resume"
)

// start is something that a program does before it reads its input. The guest tells what
// came of it, then a space and its input.
type start struct {
	does      string
	raw       bool   // only the guest in C does it
	args      string // of the manifest; empty: does
	snapshot  string // of the manifest; empty: start, the author's word that resuming does no harm
	reason    string // why calls start the program anew; empty: they resume it
	unguarded unguarded
	output    func(who, input string) string // of each call; nil: it tells a time, or random bytes
	log       string
}

// tells is the output of a guest to which the same text came of each start.
func tells(text string) func(who, input string) string {
	return func(_, input string) string { return text + " " + input }
}

func tooEarly(function string) string { return "it calls " + function + " before it reads its input" }

var starts = []start{
	{does: "file", reason: tooEarly("path_open"), unguarded: leaks, output: func(who, input string) string { return who + " " + input }},
	{does: "stat", reason: tooEarly("path_filestat_get"), unguarded: leaks, output: func(who, input string) string { return fmt.Sprintf("%d %s", len(who), input) }},
	{does: "list", reason: tooEarly("path_open"), unguarded: leaks, output: func(who, input string) string { return "about-" + who + ";tenant.txt; " + input }},
	{does: "argument", args: `"{who}"`, reason: "its command line depends on the call", unguarded: leaks, output: func(who, input string) string { return who + " " + input }},
	{does: "sleep", reason: tooEarly("poll_oneoff"), unguarded: leaks},
	{does: "random", snapshot: "auto", reason: "it asks for random bytes as it starts", unguarded: leaks},
	{does: "clock", snapshot: "auto", reason: "it asks for ", unguarded: leaks}, // Go's programs ask for random bytes too
	{does: "log", reason: tooEarly("fd_write"), unguarded: loses, output: tells("written"), log: "starting\n"},
	{does: "print", reason: tooEarly("fd_write"), unguarded: loses, output: tells("early written")},
	{does: "exit", reason: tooEarly("proc_exit"), unguarded: never, output: func(string, string) string { return "" }},

	{does: "poll", raw: true, reason: tooEarly("poll_oneoff"), unguarded: leaks, output: func(_, input string) string { return fmt.Sprintf("%d %s", len(input), input) }},
	{does: "directory-times", raw: true, reason: tooEarly("fd_filestat_get"), unguarded: leaks, output: func(who, input string) string { return fmt.Sprintf("%d %s", changed(who).UnixNano(), input) }},
	{does: "file-section", raw: true, reason: tooEarly("path_open"), unguarded: leaks, output: func(who, input string) string { return "section " + who + " " + input }},
	{does: "close", raw: true, reason: tooEarly("fd_close"), unguarded: loses, output: func(string, string) string { return "errno 0 errno 8" }},
	{does: "renumber", raw: true, reason: tooEarly("fd_renumber"), unguarded: loses, output: func(string, string) string { return "errno 0 errno 8" }},
	{does: "read-directory", raw: true, reason: tooEarly("fd_read"), unguarded: equals, output: tells("errno 31")},
	{does: "pread", raw: true, reason: tooEarly("fd_pread"), unguarded: equals, output: tells("errno 70")},
	{does: "seek", raw: true, reason: tooEarly("fd_seek"), unguarded: equals, output: tells("errno 70")},

	// The controls: what is the same for all calls is done once for them.
	{does: "constant", output: tells("constant")},
	{does: "environment", output: tells("setting")},
	{does: "clock"},
	{does: "random"},
	// It reads the file only after an empty read, which is where calls resume.
	{does: "read-nothing", raw: true, output: func(who, input string) string { return who + " " + input }},
	// What a call sets is gone in the next one, and what the start has set is there.
	{does: "flags", raw: true, output: tells("flags 4 0")},
}

// languages are those of the early guest, with its module.
var languages = map[string]string{
	"C": "internal/guests/early/c/early.wasm", "Rust": "internal/guests/early/rust/early.wasm", "Go": "internal/guests/early/early.wasm",
}

// eachStart runs a subtest for each start in each language.
func eachStart(t *testing.T, test func(t *testing.T, s start, guest *Tool)) {
	r := newRuntime(t, Options{})
	for language, module := range languages {
		for _, s := range starts {
			if s.raw && language != "C" {
				continue
			}
			t.Run(fmt.Sprintf("%s %s%s", language, s.does, s.snapshot), func(t *testing.T) {
				test(t, s, loadEarly(t, r, module, s))
			})
		}
	}
}

// TestStartsOfTenantsNeverMeet: what a program does before it reads its input is either the
// same for all calls or done anew in each. One tenant's call never gets what another's
// start read, although the author says that the program may be started once.
func TestStartsOfTenantsNeverMeet(t *testing.T) {
	eachStart(t, func(t *testing.T, s start, guest *Tool) {
		told := map[string]int{}
		for n := range 8 {
			who := tenants[n%len(tenants)]
			outcome, err := guest.Invoke(t.Context(), invocationOf(t, who))
			require.NoError(t, err, outcome.Log)
			require.True(t, outcome.Result.Success, outcome.Result.Error)
			assert.Equal(t, s.log, outcome.Log)
			if n == 1 {
				guest.program.settled(t)
			}
			if s.output != nil {
				assert.Equal(t, s.output(who, inputOf(who)), outcome.Result.Output)
				continue
			}
			text, input, _ := strings.Cut(outcome.Result.Output, " ")
			assert.Equal(t, inputOf(who), input)
			told[text]++
		}
		started, reason := guest.program.settled(t)
		assert.Contains(t, reason, s.reason)
		assert.Equal(t, s.reason == "", started != nil, reason)
		switch {
		case s.output != nil:
		case s.reason == "":
			assert.Len(t, told, 3, "two calls start the program for themselves, and the others resume one start")
		default:
			assert.Len(t, told, 8, "each call starts the program")
		}
	})
}

// TestToolsOfOneModuleNeverShareAStart: a start belongs to a tool, not to its module.
func TestToolsOfOneModuleNeverShareAStart(t *testing.T) {
	r := newRuntime(t, Options{})
	var guests []*Tool
	for _, text := range []string{"one", "two"} {
		guests = append(guests, loadEarly(t, r, languages["C"], start{does: text}))
	}
	for call := range 4 {
		for n, text := range []string{"one", "two"} {
			outcome, err := guests[n].Invoke(t.Context(), invocationOf(t, tenants[0]))
			require.NoError(t, err, outcome.Log)
			assert.Equal(t, text+" "+inputOf(tenants[0]), outcome.Result.Output)
			if call == 1 {
				started, reason := guests[n].program.settled(t)
				assert.NotNil(t, started, reason)
			}
		}
	}
}
