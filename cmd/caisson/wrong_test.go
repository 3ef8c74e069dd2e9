package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/noerr"
)

var updateWrong = flag.Bool("update", false, "write the output to testdata/wrong.golden")

// wrongInput is a mistake that people make, in a file or on the command line.
type wrongInput struct {
	file string // its contents; empty for none
	line string // the command line, in which FILE is the file
}

const (
	wrongManifest = "validate --no-module FILE"
	manifestHead  = "schema: caisson/v1\nname: t\ndescription: Do this and that.\nmodule: {path: t.wasm}\n"
	policyHead    = "schema: caisson-config/v1\n"
)

// wrongInputs are one mistake each.
var wrongInputs = []wrongInput{
	// Manifests.
	{"nothing\n", wrongManifest},
	{"schema: caisson/v2\nname: t\ndescription: d.\nmodule: {path: t.wasm}\n", wrongManifest},
	{"schema: caisson/v1\nname: t\ndescription: d.\n", wrongManifest},
	{"schema: caisson/v1\nname: My Tool\ndescription: d.\nmodule: {path: t.wasm}\n", wrongManifest},
	{"schema: caisson/v1\nname: t\ndescription: ''\nmodule: {path: t.wasm}\n", wrongManifest},
	{"schema: caisson/v1\nname: t\ndescription: d.\nmodule: {path: ../t.wasm}\n", wrongManifest},
	{"schema: caisson/v1\nname: t\ndescription: d.\nmodule: {path: t.wasm, stdout: yes}\n", wrongManifest},
	{"schema: caisson/v1\nname: t\ndescription: d.\nmodule: {path: t.wasm, sha256: abc}\n", wrongManifest},
	{"schema: caisson/v1\nname: t\ndescription: d.\nmodule: {path: t.wasm, args: ['{a}']}\n", wrongManifest},
	{"schema: caisson/v1\nname: t\ndescription: d.\nmodule: {path: t.wasm, success_codes: [one]}\n", wrongManifest},
	{"schema: caisson/v1\nname: t\ndescription: d.\nmodule: {path: t.wasm}\n", "validate FILE"},
	{"schema: caisson/v1\nname: t\ndescription: d.\nmodule: {path: t.wasm, sha256: 0000000000000000000000000000000000000000000000000000000000000000}\n", wrongManifest},
	{manifestHead + "\tversion: 1.0.0\n", wrongManifest},
	{manifestHead + "parameters: {type: object, properties: {a: {type: string}\n", wrongManifest},
	{manifestHead + "paramters: {type: object}\n", wrongManifest},
	{manifestHead + "permissions: {", wrongManifest},
	{manifestHead + "label: *a\n", wrongManifest},
	{manifestHead + "label: a: b\n", wrongManifest},
	{manifestHead + "label:a\n", wrongManifest},
	{manifestHead + "parameters: {type: object, properties: {a: {}}, additionalProperties: false, allOf: [{required: [b]}]}\n", wrongManifest},
	{manifestHead + "parameters: {type: object, properties: {a: {type: integer, minimum: 5, maximum: 3}}}\n", wrongManifest},
	{manifestHead + "parameters: {type: object, properties: {a: {type: integer, default: b}}}\n", "validate --no-module --strict FILE"},
	{manifestHead + "name: again\n", wrongManifest},
	{manifestHead + "parameters: {type: array}\n", wrongManifest},
	{manifestHead + "parameters: {type: object, properties: {a: {type: integr}}}\n", wrongManifest},
	{manifestHead + "parameters: {type: object, required: [b], properties: {a: {type: string}}}\n", wrongManifest},
	{manifestHead + "limits: {timeout: 10}\n", wrongManifest},
	{manifestHead + "limits: {timeout: 10 seconds}\n", wrongManifest},
	{manifestHead + "limits: {memory: 64 mega}\n", wrongManifest},
	{manifestHead + "permissions: {network: [{host: 'https://a.example'}]}\n", wrongManifest},
	{manifestHead + "permissions: {network: [a.example]}\n", wrongManifest},
	{manifestHead + "permissions: {files: [{path: project}]}\n", wrongManifest},
	{manifestHead + "permissions: {files: [{path: /a, access: write}]}\n", wrongManifest},
	{manifestHead + "permissions: {secrets: [{name: K, host: a.example}]}\n", wrongManifest},
	{manifestHead + "behavior: {read_only: yes please}\n", wrongManifest},
	{manifestHead + "behavior: {read_only: true, destructive: true}\n", wrongManifest},
	{manifestHead + "aliases: [t]\n", wrongManifest},
	{manifestHead + "behavior: {read_only: true, cache: no}\n", wrongManifest},
	{manifestHead + "$schema: manifest.schema.json\n", wrongManifest},
	{manifestHead + "parameters: {city: {type: string}}\n", wrongManifest},
	{manifestHead + "parameters: {$schema: 'http://json-schema.org/draft-04/schema#', type: object}\n", wrongManifest},
	{"schema: caisson/v1\nname: t\ndescription: d.\nmodule: {path: t.wasm, entry: run}\n", wrongManifest},
	// Policies.
	{policyHead + "tool: [{path: calc}]\n", "validate FILE"},
	{policyHead + "tools: [calc]\n", "validate FILE"},
	{policyHead + "tools: [{path: nowhere}]\n", "validate FILE"},
	{policyHead + "profile: fast\n", "validate FILE"},
	{policyHead + "profiles: {a: {extends: a}}\n", "validate FILE"},
	{policyHead + "grants: [{tools: ['calc['], network: [{host: a.example}]}]\n", "validate FILE"},
	{policyHead + "grants: [{network: [{host: a.example}]}]\n", "validate FILE"},
	{policyHead + "grants: [{tools: [calculator], files: [{path: /a}]}]\n", "validate FILE"},
	{policyHead + "grants: [{tools: [t], secrets: [{name: K, from: {env: A, file: b}, host: a.example}]}]\n", "validate FILE"},
	{policyHead + "deny: [{network: {host: '*.a'}, files: {path: /a}}]\n", "validate FILE"},
	{policyHead + "context: {p: {from: model}}\n", "validate FILE"},
	{policyHead + "ask: calculator\n", "validate FILE"},
	// Calls.
	{"", "call"},
	{"", "call calculater {} --tools calc"},
	{"", "call calculator --tools calc"},
	{"", `call calculator {"expression":1} --tools calc`},
	{"", `call calculator {"expression":"1","foo":2} --tools calc`},
	{"", `call calculator {"expression":"1" --tools calc`},
	{"", `call calculator {'expression':'1'} --tools calc`},
	{"", `call calculator ["1"] --tools calc`},
	{"", "call calculator expresion=1 --tools calc"},
	{"", "call calculator 2*3 --tools calc"},
	{"", "call calculator expression --tools calc"},
	{"", "call calculator expression 2*3 --tools calc"},
	{"", "call calculator expression: 2*3 --tools calc"},
	{"", "call calculator precision=2 2*3 --tools calc"},
	{"", "call calculator --expression=2*3 --tools calc"},
	{"", "call calc/tool.yaml 2*3"},
	{"", "call calculator @nofile --tools calc"},
	{"", "call calculator {} --tools nowhere"},
	{"", "call calculator {} --tools calc --config nope.yaml"},
	{"", "call calculator {} --tools calc --timeout 5"},
	{"", "call calculator {} --tools calc --memory 1X"},
	{"", "call calculator {} --tools calc --memory 64"},
	{"", "call calculator {} --tools calc --memory"},
	{"", "call calculator {} --tools calc --json=maybe"},
	{"", "call calculator {} --tool calc"},
	{"", "call calculator {} --tools calc --mount a"},
	{"", "call calculator {} --tools calc --allow-net http//x"},
	{"", "call calculator {} --tools calc --allow-net a_name!"},
	{"", "call calculator {} --tools calc --secret K=x@a.example"},
	{"", "call calculator {} --tools calc --frobnicate"},
	{"", `call file_read {"path":"../../etc/passwd"} --tools files --mount /project=. --context project_id=p`},
	{"", `call file_read {"path":"/etc/passwd"} --tools files --mount /project=. --context project_id=p`},
	{"", `call file_read {"path":"a.txt"} --tools files --context project_id=p`},
	{"", `call file_read {"path":"a.txt"} --tools files --mount /project=nodir --context project_id=p`},
	// Other commands and batches.
	{"", "cal"},
	{"", "lst"},
	{"", "--config caisson.yaml"},
	{"package main\n", "list --tools FILE"},
	{"package main\n", "list --config FILE"},
	{manifestHead, "list --config FILE"},
	{policyHead, "list --tools FILE"},
	{"", "serve --tools calc --addr 8790"},
	{"", "serve --tools calc --addr :8790"},
	{"", "serve --tools calc --addr localhost"},
	{"", "serve --tools calc --addr http://localhost:80"},
	{"", "serve --tools calc --addr [::1"},
	{"", "explain --last --output --from a"},
	{"", "token create --expires 30"},
	{"", "validate nowhere"},
	{"", "validate calc/calculator.wasm"},
	{"", "explain nope"},
	{"", "inspect"},
	{"", "list --definitions foo --tools calc"},
	{"", "list extra"},
	{"", "compile nowhere"},
	{"hello\n", "batch FILE --tools calc"},
	{`{"id":"1","name":"calculator","arguments":{}}`, "batch FILE --tools calc"},
	{`{"id":"1","function":{"name":"calculator","arguments":"{}"}`, "batch FILE --tools calc"},
	{"{\"choices\":[{\"index\":0,\n\"message\":{},}]}", "batch FILE --tools calc"},
	{`{"choices":[{"index":0,"message":{"tool_calls":[{"id":"1","type":"function"}]}}]}`, "batch FILE --tools calc"},
	{"", "batch nofile.json"},
	{"", "batch --resume nope"},
}

// idsAndTimes matches ids and times, which differ from run to run.
var idsAndTimes = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|20\d\d-\d\d-\d\d [0-9:]+ [-+][0-9:]+`)

// TestWrongInputs: the answer to a mistake has the mistake, its place and the fix, in at most three
// lines, or six for a denial. The output is in testdata/wrong.golden.
func TestWrongInputs(t *testing.T) {
	root := noerr.Get(guests.Compile(t.Context(), "wasm-tools/calculator", "wasm-tools/files"))(t)
	golden := noerr.Get(filepath.Abs(filepath.Join("testdata", "wrong.golden")))(t)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "calc"), os.DirFS(filepath.Join(root, "wasm-tools", "calculator"))))
	require.NoError(t, os.CopyFS(filepath.Join(dir, "files"), os.DirFS(filepath.Join(root, "wasm-tools", "files"))))
	t.Chdir(dir)
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	var printed strings.Builder
	for _, wrong := range wrongInputs {
		file := "tool.yaml"
		switch {
		case strings.HasPrefix(wrong.file, policyHead):
			file = "caisson.yaml"
		case strings.HasPrefix(wrong.line, "batch"):
			file = "batch.json"
		case strings.HasPrefix(wrong.file, "package "):
			file = "main.go"
		}
		require.NoError(t, os.WriteFile(file, []byte(wrong.file), 0o600))
		line := strings.ReplaceAll(wrong.line, "FILE", file)
		code, stdout, stderr := start(t.Context(), strings.NewReader(""), strings.Fields(line)...)
		said := idsAndTimes.ReplaceAllString(strings.ReplaceAll(stdout+stderr, dir, "DIR"), "…")
		fmt.Fprintf(&printed, "$ caisson %s\n%s%sexit %d\n\n", line, asFile(wrong.file), said, code)

		assert.Contains(t, []int{exitUsage, exitDenied}, code, line)
		most := 3
		if code == exitDenied {
			most = 6
		}
		assert.LessOrEqual(t, strings.Count(said, "\n"), most, "%s\n%s", line, said)
		assert.Regexp(t, "(?m)^(caisson: hint: |  fix: )", said, line)
		require.NoError(t, os.Remove(file))
	}
	if *updateWrong {
		require.NoError(t, os.WriteFile(golden, []byte(printed.String()), 0o600))
	}
	want := noerr.Get(os.ReadFile(golden))(t)
	expected := strings.Split(string(want), "\n\n")
	for i, said := range strings.Split(printed.String(), "\n\n") {
		if i >= len(expected) || expected[i] != said {
			t.Fatalf("-update writes the present output, beginning with\n%s", said)
		}
	}
}

// asFile returns a file's text as the golden file has it: indented.
func asFile(text string) string {
	if text == "" {
		return ""
	}
	return "\t" + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n\t") + "\n"
}
