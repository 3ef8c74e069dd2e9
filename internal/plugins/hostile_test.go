package plugins

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/tool"
)

// attack is an export of the plug-in that means harm, and how it ends.
type attack struct {
	export string
	output string // if it may succeed, a pattern of its whole output
	fails  string // if it may fail, a part of the error
	kind   tool.Kind
	// control is a pattern of what go-sdk's answer shows, output and error. Empty: there it ends the same.
	control string
}

// attacks are all exports of c/hostile.c but the one that is harmless and those that never end.
func attacks() []attack {
	return []attack{
		{export: "interior", output: "0 blocks"},
		{export: "length_of_nothing", output: "0 bytes"},
		{export: "unsafe_length_of_nothing", output: "0 bytes"},
		{export: "load_beyond", fails: "load_u8", control: "^0$"},
		{export: "load_word_across_the_end", fails: "load_u64", control: "^0$"},
		{export: "load_far_beyond", fails: "load_u64", control: `^\d+$`},
		{export: "load_at_the_last_address", fails: "load_u64"},
		{export: "load_wrapped_address", fails: "load_u8", control: "^0$"},
		{export: "store_beyond", fails: "store_u8", control: "stored"},
		{export: "store_word_across_the_end", fails: "store_u64", control: "stored"},
		{export: "store_far_beyond", fails: "store_u64", control: "stored"},
		{export: "store_wrapped_address", fails: "store_u8", control: "stored m"},
		{export: "input_beyond", output: "0"},
		{export: "input_before", output: "0", control: `^[1-9]\d+$`}, // what go-sdk keeps about its blocks
		{export: "input_elsewhere", fails: "input_set"},

		{export: "output_longer_than_its_block", fails: "output_set"},
		{export: "output_of_all_memory", fails: "output_set"},
		{export: "output_outside", fails: "output_set"},
		{export: "output_wraps", fails: "output_set"},
		{export: "output_at_the_end", fails: "output_set", control: `^\x00{64}$`},
		{export: "output_of_a_freed_block", output: "freed"},
		{export: "output_then_reset", output: ""},
		{export: "error_outside", fails: "error_set"},
		{export: "error_inside_a_block", fails: "error_set"},
		{export: "error_of_a_freed_block", fails: "error_set"},

		{export: "free_twice", output: "two blocks"},
		{export: "free_what_is_no_block", output: "16"},
		{export: "free_the_input", output: "9"},
		{export: "store_into_a_freed_block", output: "a"},
		{export: "overwrite", output: "went on", fails: "store_u64"},
		{export: "overwrite_headers", output: "went on"},

		{export: "allocate_all", output: "refused", control: "allocated"},
		{export: "allocate_half", output: "refused", control: "allocated"},
		{export: "allocate_4_gib", output: "refused"},
		{export: "allocate_nearly_4_gib", output: "refused"},
		{export: "allocate_1_gib", output: "refused", control: "allocated"},
		{export: "million_blocks", output: "1000000"},
		{export: "million_blocks_freed", output: "reused"},
		{export: "memory_until_refused", output: `refused after \d+`},
		{export: "both_memories", output: "refused the host's", control: "80 MiB"},

		{export: "variable_is_its_own_name", output: "4 bytes"},
		{export: "variable_inside_its_name", fails: "var_set", control: "set"},
		{export: "variable_from_nowhere", fails: "var_set", control: "set"},
		{export: "variable_of_a_freed_name", fails: "var_set", control: "set"},
		{export: "read_a_variable_from_nowhere", fails: "var_get"},
		{export: "read_a_configuration_from_nowhere", fails: "config_get"},
		{export: "leave_a_variable", output: "set"},
		{export: "variables_without_end", fails: "variable"},
		{export: "many_variables", fails: "variable"},
		{export: "grow_a_variable_by_reading", output: `refused after \d+`, fails: "memory", kind: tool.Memory},

		{export: "request_from_nowhere", fails: "http_request"},
		{export: "request_that_is_no_json", fails: "request"},
		{export: "request_with_a_body_from_nowhere", fails: "http_request", control: `^\d+$`},
		{export: "request_of_a_number", fails: "request"},
		{export: "request_to_a_file", fails: "https://"},
		{export: "request_to_what_is_not_granted", fails: "169.254.169.254"},
		{export: "leave_a_status", output: "404"},
		{export: "request_redirected", fails: "elsewhere.example", control: "200 the secret"},

		{export: "log_from_nowhere", fails: "log_info", control: "logged"},
		{export: "log_a_giant", output: "logged"},
		{export: "log_many", output: "logged"},
		{export: "recursion", fails: "stack", kind: tool.Trap},
	}
}

// hostile returns the plug-in that means harm.
func hostile(t testing.TB) subject {
	t.Helper()
	module, err := os.ReadFile("c/hostile.wasm")
	require.NoError(t, err)
	return subject{
		name: "hostile", module: module, hosts: []string{"api.example.com"},
		limits: `{"timeout": "10s", "memory": "64MiB", "stderr": "64KiB"}`,
	}
}

const roomForLogs = 64 << 10

// TestAttacksOfPluginsAreContained: each attack ends with output that it may see or with a readable error, and the next
// call finds no effect of it. The controls show what the same attack sees on go-sdk.
func TestAttacksOfPluginsAreContained(t *testing.T) {
	serve(t)
	s := hostile(t)
	next := caisson(t, s, "harmless")
	for _, a := range attacks() {
		t.Run(a.export, func(t *testing.T) {
			attack := caisson(t, s, a.export)
			for range 2 {
				outcome, err := attack("the input")
				a.check(t, outcome, err)
				assert.LessOrEqual(t, len(outcome.Log), 2*roomForLogs)
				outcome, err = next("hello")
				require.NoError(t, err)
				assert.Equal(t, "1 clean hello", outcome.Result.Output)
			}
			// go-sdk takes the gigabyte.
			if a.control != "" && (testsize.Slow || a.export != "allocate_1_gib") {
				got := theirs{}.load(t, s, a.export)("the input")
				assert.Regexp(t, a.control, got.Output+got.Error)
			}
		})
	}
}

func (a attack) check(t *testing.T, outcome tool.Outcome, err error) {
	t.Helper()
	if outcome.Result.Success {
		require.NoError(t, err)
		require.True(t, a.output != "" || a.fails == "", "it must fail: %s", outcome.Result.Output)
		require.Regexp(t, regexp.MustCompile("^(?s:"+a.output+")$"), outcome.Result.Output)
		return
	}
	require.NotEmpty(t, a.fails, "it failed: %s", outcome.Result.Error)
	require.Contains(t, outcome.Result.Error, a.fails)
	require.NotContains(t, outcome.Result.Error, "goroutine")
	require.NotContains(t, outcome.Result.Error, "internal error")
	if a.kind != "" {
		require.Equal(t, a.kind, outcome.Result.Kind)
	}
	require.NotEqual(t, tool.Internal, outcome.Result.Kind)
}

// TestAttacksAreAllTried: the list names each export of the plug-in that means harm.
func TestAttacksAreAllTried(t *testing.T) {
	source, err := os.ReadFile("c/hostile.c")
	require.NoError(t, err)
	var exported, tried []string
	for _, found := range regexp.MustCompile(`(?m)^ATTACK\((\w+)\)`).FindAllStringSubmatch(string(source), -1) {
		if found[1] != "harmless" && !strings.HasPrefix(found[1], "endless") {
			exported = append(exported, found[1])
		}
	}
	for _, a := range attacks() {
		tried = append(tried, a.export)
	}
	assert.ElementsMatch(t, exported, tried)
}

// TestEndlessPluginsAreStopped: a plug-in that never returns ends at its deadline, wherever it loops: in its
// own code, in calls of each kind to the host, or in what hosts call before the export.
func TestEndlessPluginsAreStopped(t *testing.T) {
	serve(t)
	s := hostile(t)
	subjects := map[string]subject{}
	for _, export := range []string{"endless", "endless_allocations", "endless_loads", "endless_logs", "endless_variables"} {
		subjects[export] = s
	}
	for _, initializer := range []string{"_initialize", "__wasm_call_ctors", "hs_init", "start"} {
		subjects[initializer] = subject{name: initializer, module: endless(initializer)}
	}
	const timeout, late = 50 * time.Millisecond, 950 * time.Millisecond
	for name, s := range subjects {
		t.Run(name, func(t *testing.T) {
			export := "call"
			if strings.HasPrefix(name, "endless") {
				export = name
			}
			s.limits = fmt.Sprintf(`{"timeout": "%dms"}`, timeout.Milliseconds())
			call := caisson(t, s, export)
			for range testsize.Of(2, 5) { // later calls may resume an earlier start
				outcome, err := call("the input")
				require.ErrorIs(t, err, tool.Deadline)
				assert.Equal(t, tool.Deadline, outcome.Result.Kind)
				assert.Less(t, outcome.Usage.Wall, timeout+late)
			}
		})
	}
	outcome, err := caisson(t, s, "harmless")("hello")
	require.NoError(t, err)
	assert.Equal(t, "1 clean hello", outcome.Result.Output)
}

// TestEndlessRequestsAreStopped: so does one that sends requests without end, by their number.
func TestEndlessRequestsAreStopped(t *testing.T) {
	web := serve(t)
	s := hostile(t)
	s.limits = `{"timeout": "10s", "http_calls": 7}`
	outcome, err := caisson(t, s, "endless_requests")("the input")
	require.Error(t, err, outcome.Result.Output)
	assert.NotEqual(t, tool.Internal, outcome.Result.Kind)
	assert.Contains(t, outcome.Result.Error, "may make 7 requests")
	assert.Len(t, web.requests(), 7)
}

// TestEndlessPluginsControl: on go-sdk, the same plug-in continues after its caller's context has ended. Here its
// logger ends it, which nothing else could.
func TestEndlessPluginsControl(t *testing.T) {
	s := hostile(t)
	plugin := compileTheirs(t, s)
	instance := instanceOf(t, plugin, s)
	ctx, cancel := contextFor(t, 50*time.Millisecond)
	defer cancel()
	after := 0
	instance.SetLogger(logger(func() {
		if ctx.Err() == nil {
			return
		}
		if after++; after > 100 {
			panic("the test ends it")
		}
	}))
	_, _, err := instance.CallWithContext(ctx, "endless_logs", nil)
	require.ErrorContains(t, err, "the test ends it")
	assert.Greater(t, after, 100)
}

// endless returns a plug-in of which one function, by name or, for "start", the start function, never returns. Its
// export call does.
func endless(function string) []byte {
	section := func(id byte, content ...byte) []byte { return append([]byte{id, byte(len(content))}, content...) }
	text := func(t string) []byte { return append([]byte{byte(len(t))}, t...) }
	endlessType := byte(0)
	if function == "hs_init" {
		endlessType = 1
	}
	var module []byte
	add := func(id byte, parts ...[]byte) {
		var content []byte
		for _, part := range parts {
			content = append(content, part...)
		}
		module = append(module, section(id, content...)...)
	}
	add(1, []byte{4, 0x60, 0, 0, 0x60, 2, 0x7f, 0x7f, 0, 0x60, 0, 1, 0x7f, 0x60, 0, 1, 0x7e}) // ()→(), (i32, i32)→(), ()→i32, ()→i64
	add(2, []byte{1}, text("extism:host/env"), text("input_length"), []byte{0, 3})
	add(3, []byte{2, endlessType, 2})
	if function == "start" {
		add(7, []byte{1}, text("call"), []byte{0, 2})
		add(8, []byte{1})
	} else {
		add(7, []byte{2}, text(function), []byte{0, 1}, text("call"), []byte{0, 2})
	}
	add(10, []byte{2, 7, 0, 0x03, 0x40, 0x0c, 0, 0x0b, 0x0b, 7, 0, 0x10, 0, 0x1a, 0x41, 0, 0x0b}) // loop; input_length, 0
	return append([]byte("\x00asm\x01\x00\x00\x00"), module...)
}
