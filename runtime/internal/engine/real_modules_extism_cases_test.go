//go:build !race

package engine

import "strings"

// plugins returns all plug-ins of github.com/extism/go-sdk's folder wasm, each with calls
// that make it do what it was written for.
func plugins(address string) []plugin {
	one := func(calls ...plugCall) []episode { return []episode{{calls: calls}} }
	run := func(input, shows string) plugCall { return plugCall{"run_test", input, shows} }
	start := func(input, shows string) plugCall { return plugCall{"_start", input, shows} }
	local := []string{"127.0.0.1"}
	get := plugCall{"http_get", `{"url": "` + address + `/get"}`, "application/json"}
	refused := plugCall{"http_get", `{"url": "` + address + `/get"}`, "is not allowed"}
	return []plugin{
		// It calls its host millions of times.
		{modules: []string{"alloc"}, episodes: one(run("", "code 0"))},
		{modules: []string{"config"}, episodes: []episode{
			{config: map[string]string{"thing": "hello"}, calls: []plugCall{run("", `{"config": "hello"}`)}},
			{calls: []plugCall{run("", "<unset by host>")}},
		}},
		{modules: []string{"count_vowels"}, episodes: []episode{
			{calls: []plugCall{{"count_vowels", "hello world", `"count":3,"total":3`}, {"count_vowels", "aaaaaa", `"count":6,"total":9`},
				{"count_vowels", "", `"count":0`}, {"count_vowels", strings.Repeat("programme ", 500), `"count":1500`}}},
			{config: map[string]string{"vowels": "xyz"}, calls: []plugCall{{"count_vowels", "xylophone", `"count":2`}}},
		}},
		{modules: []string{"count_vowels_std"}, episodes: one(start("hello world", "count"))},
		{modules: []string{"exit"}, episodes: []episode{
			{config: map[string]string{"code": "-1"}, calls: []plugCall{start("", "code 4294967295")}},
			{config: map[string]string{"code": "500"}, calls: []plugCall{start("", "code 500")}},
			{config: map[string]string{"code": "abc"}, calls: []plugCall{start("", "code 1")}},
			{calls: []plugCall{start("", "code 2")}},
		}},
		{modules: []string{"fail"}, episodes: one(run("", "Some error message"))},
		{modules: []string{"fs"}, files: writesFiles, episodes: one(run("", "hello world!"))},
		{modules: []string{"fs_std"}, files: writesFiles, episodes: one(run("", "hello world!"))},
		{modules: []string{"hello"}, episodes: one(run("", "Hello, world!"))},
		{modules: []string{"hello_haskell"}, episodes: []episode{
			{config: map[string]string{"greeting": "Howdy"}, calls: []plugCall{{"testing", "John", "Howdy, John"}, {"testing", "Jane", "Howdy, Jane"}}},
		}},
		{modules: []string{"host"}, episodes: one(run("", "42 x 2 = 84"))},
		{modules: []string{"host_memory"}, episodes: one(run("Frodo", "HELLO FRODO!"))},
		{modules: []string{"host_multiple"}, episodes: one(plugCall{"say_green", "John", "green"}, plugCall{"say_purple", "Jane", "purple"})},
		{modules: []string{"http"}, episodes: []episode{
			{hosts: local, calls: []plugCall{run("", "delectus")}},
			{calls: []plugCall{run("", "is not allowed")}},
		}},
		{modules: []string{"http_headers"}, episodes: []episode{
			{hosts: local, headers: true, calls: []plugCall{get}},
			{calls: []plugCall{refused}},
		}},
		{modules: []string{"input_offset"}, episodes: one(plugCall{"input_offset_length", "hello world", "output: \v"})},
		{modules: []string{"log"}, episodes: one(run("", "WARN: this is a warning log"))},
		{modules: []string{"lib", "main"}, episodes: one(run("benjamin", "Hello, BENJAMIN"), run("again", "Hello, AGAIN"))},
		{modules: []string{"nested.c.instr"}, episodes: one(start("", "instrument_enter"))},
		{modules: []string{"noop"}, episodes: one(run("", "code 0"))},
		{modules: []string{"println"}, episodes: one(run("a line", "a line"))},
		{modules: []string{"read_write"}, files: readsFiles, episodes: []episode{
			{config: map[string]string{"path": "/mnt/test.txt"}, calls: []plugCall{
				{"try_read", "", "hello world!"}, {"try_write", "hello hello!", "Failed to write file"}}},
		}},
		{modules: []string{"replace"}, episodes: one(run("", "code 0"), run(strings.Repeat("a test of tests ", 200), "a wasm of wasms"))},
		{modules: []string{"sleep"}, episodes: []episode{
			{config: map[string]string{"duration": "2"}, calls: []plugCall{run("", "slept for 2 seconds")}},
		}},
		{modules: []string{"std_command"}, episodes: one(start("ben", "hello ben"))},
		{modules: []string{"var"}, episodes: []episode{
			{vars: map[string][]byte{"a": {10, 0, 0, 0}}, calls: []plugCall{run("", `"\x14\x00\x00\x00"`), run("", `"(\x00\x00\x00"`)}},
		}},
	}
}
