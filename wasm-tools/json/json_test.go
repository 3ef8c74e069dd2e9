package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func run(t *testing.T, text, operation, path string) (output string, data map[string]any) {
	t.Helper()
	result, err := process(arguments{JSONString: text, Operation: operation, Path: &path})
	require.NoError(t, err)
	require.True(t, result.Success)
	require.True(t, json.Valid([]byte(result.Output)))
	return result.Output, result.Data.(map[string]any)
}

// TestDataHoldsWhatItCan: a value that does not fit in the data of a result is only in its output.
func TestDataHoldsWhatItCan(t *testing.T) {
	long := strings.Repeat("9", 200)
	for _, test := range []struct {
		text     string
		embedded bool
	}{
		{`[1e400,-1e-400,` + strings.Repeat("9", 128) + `]`, true},
		{`[1e401]`, false}, {`{"a":[1e-401]}`, false}, {`[1e99999999999999999999]`, false}, {`{"a":` + long + `}`, false},
		{`{"` + strings.Repeat("a", 1000) + `":1}`, true}, {`{"` + strings.Repeat("a", 1100) + `":1}`, false},
		{`["\ud83d\ude00","\\ud800","\u00e9\n"]`, true}, {`{"\ud83d\uDE00":"x\ud83d\ude00\ud83d\ude00"}`, true},
		{`"\ud800"`, false}, {`["a\udc00"]`, false}, {`"\ud83dx\ude00"`, false}, {`"\ud83d\n"`, false}, {`"\ud83d\ud83d\ude00"`, false}, {`{"\ud800":1}`, false},
		{`"` + strings.Repeat("a", 200<<10) + `"`, true}, {`"` + strings.Repeat("a", 300<<10) + `"`, false},
	} {
		output, data := run(t, test.text, "parse", "")
		assert.Equal(t, test.text, output)
		value, embedded := data["value"]
		assert.Equal(t, test.embedded, embedded, "%.40s", test.text)
		if embedded {
			assert.Equal(t, test.text, string(value.(json.RawMessage)))
		}
	}
	_, data := run(t, "["+strings.Repeat("0,", 1000)+"0]", "query", "$[*]")
	assert.Len(t, data["paths"], 1001)
	name := strings.Repeat("n", 1000)
	_, data = run(t, `{"`+name+`":[`+strings.Repeat("0,", 1000)+"0]}", "query", "$.*[*]")
	assert.Equal(t, 1001, data["count"])
	assert.NotContains(t, data, "paths", "a megabyte of them")
}

// TestEveryOperationTakesItsArguments: an operation refuses missing arguments and those of other operations, so that no
// argument is ignored.
func TestEveryOperationTakesItsArguments(t *testing.T) {
	empty, text := "", "{}"
	for name, o := range operations {
		for _, given := range []string{"", "patch", "target"} {
			a := arguments{JSONString: "{}", Operation: name, Path: &empty}
			if name == "query" {
				root := "$"
				a.Path = &root
			}
			if name == "patch" {
				text = "[]"
			} else {
				text = "{}"
			}
			switch given {
			case "patch":
				a.Patch = &text
			case "target":
				a.Target = &text
			}
			_, err := process(a)
			assert.Equal(t, given == o.takes, err == nil, "%s with %q: %v", name, given, err)
		}
	}
	_, err := process(arguments{JSONString: "{}", Operation: "validate", Path: &empty})
	assert.ErrorContains(t, err, "takes json_string alone")
}
