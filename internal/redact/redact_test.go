package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/redact"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// encoded returns a value's JSON.
func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// rule redacts parts of the calls of crm_find.
func rule(arguments, result []string) redact.Rules {
	return redact.Rules{{Tools: []string{"crm_*"}, Arguments: arguments, Result: result}}
}

// ended returns a call of crm_find that has ended.
func ended(arguments string, result tool.Result) executor.Entry {
	return executor.Entry{Tool: "crm_find", Record: tool.Record{
		Call:   tool.Call{ID: "call_1", Type: "function", Function: tool.Function{Name: "crm_find", Arguments: arguments}},
		CallID: "0199f3c2-5d1e-7aa0-b3a5-6f0d9c1e2b47", Result: result,
	}}
}

func succeeded(output string) tool.Result { return tool.Result{Success: true, Output: output} }

func TestPointersIntoArguments(t *testing.T) {
	const whole = `{"customer": {"email": "ann@example.com", "a/b~c": 1234567}, "cards": ["4111 1111", "5500 0000"], "n": 1}`
	for pointer, want := range map[string]string{
		"/customer/email":   `{"customer": {"email": "[redacted]", "a/b~c": 1234567}, "cards": ["4111 1111", "5500 0000"], "n": 1}`,
		"/customer":         `{"customer": "[redacted]", "cards": ["4111 1111", "5500 0000"], "n": 1}`,
		"/customer/a~1b~0c": `{"customer": {"email": "ann@example.com", "a/b~c": "[redacted]"}, "cards": ["4111 1111", "5500 0000"], "n": 1}`,
		"/cards/1":          `{"customer": {"email": "ann@example.com", "a/b~c": 1234567}, "cards": ["4111 1111", "[redacted]"], "n": 1}`,
		"/cards/*":          `{"customer": {"email": "ann@example.com", "a/b~c": 1234567}, "cards": ["[redacted]", "[redacted]"], "n": 1}`,
		"/n/deeper":         `{"customer": {"email": "ann@example.com", "a/b~c": 1234567}, "cards": ["4111 1111", "5500 0000"], "n": "[redacted]"}`,
		"":                  `"[redacted]"`,
		"/missing":          whole,
	} {
		before := ended(whole, succeeded("done"))
		after := rule([]string{pointer}, nil).Redact(before, nil)
		assert.Equal(t, want, after.Record.Function.Arguments, pointer)
		assert.Equal(t, want != whole, after.Record.Redacted, pointer)
		assert.Equal(t, whole, before.Record.Function.Arguments, "the given entry stays")
	}
	other := ended(whole, succeeded("done"))
	other.Tool, other.Record.Function.Name = "search", "search"
	assert.Equal(t, other, rule([]string{""}, []string{""}).Redact(other, nil), "of another tool")
}

func TestPointersIntoResults(t *testing.T) {
	const people = `[{"name": "Ann", "iban": "DE02"}, {"name": "Bob", "iban": "DE03"}]`
	const without = `[{"name": "Ann", "iban": "[redacted]"}, {"name": "Bob", "iban": "[redacted]"}]`
	for name, c := range map[string]struct{ given, want tool.Result }{
		"output":      {succeeded(people), succeeded(without)},
		"text":        {succeeded("Ann has DE02"), succeeded(redact.Marker)},
		"data":        {tool.Result{Success: true, Data: json.RawMessage(people)}, tool.Result{Success: true, Data: json.RawMessage(without)}},
		"an error":    {tool.Result{Kind: tool.ToolFailed, Error: "Ann has DE02"}, tool.Result{Kind: tool.ToolFailed, Error: redact.Marker}},
		"the host's":  {tool.Result{Kind: tool.Deadline, Error: "stopped after 10s"}, tool.Result{Kind: tool.Deadline, Error: "stopped after 10s"}},
		"content":     {tool.Result{Content: []tool.Content{{Type: "text", Text: people}}}, tool.Result{Content: []tool.Content{{Type: "text", Text: without}}}},
		"an image":    {tool.Result{Content: []tool.Content{{Type: "image", Data: []byte{1}}}}, tool.Result{Content: []tool.Content{{Type: "text", Text: redact.Marker}}}},
		"JSON in it":  {succeeded(`[{"iban": "DE02"}, "{\"iban\": \"DE03\"}"]`), succeeded(`[{"iban": "[redacted]"}, "[redacted]"]`)},
		"no matches":  {succeeded(`{"count": 0}`), succeeded(`{"count": 0}`)},
		"empty":       {tool.Result{Success: true}, tool.Result{Success: true}},
		"other words": {tool.Result{Success: true, Output: "DE02", Data: json.RawMessage(`"DE02"`)}, tool.Result{Success: true, Output: redact.Marker, Data: json.RawMessage(`"[redacted]"`)}},
	} {
		t.Run(name, func(t *testing.T) {
			after := rule(nil, []string{"/*/iban"}).Redact(ended("{}", c.given), nil)
			assert.Equal(t, c.want.Output, after.Record.Result.Output)
			assert.Equal(t, string(c.want.Data), string(after.Record.Result.Data))
			assert.Equal(t, c.want.Error, after.Record.Result.Error)
			assert.Equal(t, len(c.want.Content), len(after.Record.Result.Content))
			for i := range c.want.Content {
				assert.Equal(t, c.want.Content[i], after.Record.Result.Content[i])
			}
		})
	}
}

// hostWords are the texts of a record that the host writes, from its own words.
var hostWords = map[string]bool{
	"CallID": true, "Call.Type": true, "Source": true, "Parent": true, "Result.Kind": true, "Repairs.Rule": true,
	"Denials.Permission": true, "HostCalls.Kind": true, "Cuts.Part": true, "Cuts.Reference": true, "Result.Content.Type": true,
}

// plant sets every text of a record to one that holds a value.
func plant(v reflect.Value, path string, text string) (planted int) {
	switch {
	case hostWords[path]:
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(encoded(map[string]any{"a": []string{text}, text: 1})))
		return 1
	case v.Type() == reflect.TypeFor[[]byte]():
		v.SetBytes([]byte(text))
		return 1
	case v.Kind() == reflect.String:
		v.SetString(text)
		return 1
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			planted += plant(v.Index(i), path, text)
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() && v.Type() != reflect.TypeFor[time.Time]() {
				planted += plant(v.Field(i), strings.TrimPrefix(path+"."+field.Name, "."), text)
			}
		}
	}
	return planted
}

// TestAttackRepeatedValues: the tool, the model and the host repeat a value that is redacted, in every text of the record
// and in the encodings that programs write. The control is the record without a rule.
func TestAttackRepeatedValues(t *testing.T) {
	value := `Ann "O'Neil" <ann+1@example.com>`
	quoted := (encoded(value))
	for name, form := range map[string]string{
		"as it is": value, "JSON": quoted, "JSON in JSON": (encoded(quoted)),
		"URL": url.QueryEscape(value), "path": url.PathEscape(value), "Base64": base64.StdEncoding.EncodeToString([]byte(value)),
		"Base64 for URLs": base64.RawURLEncoding.EncodeToString([]byte("x" + value)), "hexadecimal": hex.EncodeToString([]byte(value)),
	} {
		t.Run(name, func(t *testing.T) {
			e := ended("", tool.Result{})
			planted := plant(reflect.ValueOf(&e.Record).Elem(), "", "<"+form+">")
			require.Greater(t, planted, 30)
			e.Record.Function.Arguments = `{"who": ` + quoted + `, "again": ` + (encoded(form)) + `}`
			e.Record.Cuts, e.Cause = nil, "failed for "+form
			before := (encoded(e.Record))
			require.Contains(t, before, (encoded(form))[1:10], "the control")
			after := rule([]string{"/who"}, nil).Redact(e, nil)
			assert.True(t, after.Record.Redacted)
			for _, text := range []string{(encoded(after.Record)), after.Cause} {
				for _, secret := range []string{"example.com", "Neil", form[2:], hex.EncodeToString([]byte("example.com"))} {
					assert.False(t, strings.Contains(text, secret), "%.40s", secret)
				}
			}
			for _, content := range after.Record.Result.Content {
				assert.NotContains(t, string(content.Data), "example.com")
			}
			assert.Equal(t, before, (encoded(e.Record)), "the caller's record stays")
		})
	}
}

// TestAttackArgumentsInOtherForms: the value is where no pointer leads, since the model wrote the arguments in a form that
// is repaired, or that is wrong. The control is the record without a rule.
func TestAttackArgumentsInOtherForms(t *testing.T) {
	repair := func(rule, path, from, to string) []tool.Repair {
		return []tool.Repair{{Path: path, Rule: rule, From: json.RawMessage(from), To: json.RawMessage(to)}}
	}
	m := &manifests.Manifest{ParameterAliases: []manifests.ParameterAlias{{Name: "number", Parameter: "card"}}}
	for name, c := range map[string]struct {
		arguments string
		repairs   []tool.Repair
		kind      tool.Kind
	}{
		"not JSON":              {arguments: `{"card": "4111-1111`, kind: tool.InvalidArguments},
		"almost JSON":           {arguments: `{'card': '4111-1111'}`, repairs: repair("tolerant_json", "", `"{'card': '4111-1111'}"`, `{"card": "4111-1111"}`)},
		"another name":          {arguments: `{"Card": "4111-1111"}`, kind: tool.InvalidArguments},
		"an alias":              {arguments: `{"number": "4111-1111"}`, repairs: repair("alias", "number", `"4111-1111"`, `"4111-1111"`)},
		"in a wrapper":          {arguments: `{"arguments": {"card": "4111-1111"}}`, repairs: repair("unwrap", "", `{"arguments": {"card": "4111-1111"}}`, `{"card": "4111-1111"}`)},
		"JSON in a text":        {arguments: `{"card": "{\"number\": \"4111-1111\"}"}`, repairs: repair("parse_json", "card", `"{\"number\": \"4111-1111\"}"`, `{"number": "4111-1111"}`)},
		"twice":                 {arguments: `{"card": "4111-1111", "card": "5500-0000"}`},
		"the text of the call":  {arguments: `4111-1111`},
		"escaped":               {arguments: `{"card": "\u0034111-1111"}`},
		"a member with escapes": {arguments: `{"c\u0061rd": "4111-1111"}`},
	} {
		t.Run(name, func(t *testing.T) {
			e := ended(c.arguments, tool.Result{Output: "charged 4111-1111", Error: "not valid: 4111-1111", Kind: c.kind, Success: c.kind == ""})
			if e.Record.Repairs = c.repairs; c.arguments[0] != '{' {
				e.Record.Type = tool.CustomCall
			}
			require.Contains(t, (encoded(e.Record)), "111-1111", "the control")
			after := rule([]string{"/card"}, nil).Redact(e, m)
			assert.NotContains(t, (encoded(after.Record)), "111-1111")
			assert.NotContains(t, (encoded(after.Record)), "5500")
			assert.True(t, after.Record.Redacted)
		})
	}
}

// TestShortValuesOfRepairs: a value that is too short to be looked for elsewhere is not in the repairs of its parameter.
func TestShortValuesOfRepairs(t *testing.T) {
	e := ended(`{"pin": "1234", "pages": "1234"}`, succeeded("pin 1234"))
	e.Record.Repairs = []tool.Repair{
		{Path: "pin", Rule: "cast_number", From: json.RawMessage(`"1234"`), To: json.RawMessage(`1234`)},
		{Path: "pages", Rule: "clamp", From: json.RawMessage(`"1234"`), To: json.RawMessage(`100`)},
	}
	after := rule([]string{"/pin"}, nil).Redact(e, nil).Record
	assert.Equal(t, `{"pin": "[redacted]", "pages": "1234"}`, after.Function.Arguments)
	assert.Equal(t, `"[redacted]""[redacted]""[redacted]"100`, string(after.Repairs[0].From)+string(after.Repairs[0].To)+string(after.Repairs[1].From)+string(after.Repairs[1].To))
	assert.Equal(t, "pin 1234", after.Result.Output, "the control")
}

// TestCutResults: a text that was cut may end within a value, so the record has the whole one alone.
func TestCutResults(t *testing.T) {
	e := ended(`{"who": "ann@example.com"}`, succeeded("mailed ann@exam"))
	e.Whole, e.Record.Cuts = succeeded("mailed ann@example.com today"), []tool.Cut{{Part: "output"}}
	after := rule([]string{"/who"}, nil).Redact(e, nil)
	assert.Equal(t, redact.Marker, after.Record.Result.Output)
	assert.Equal(t, "mailed [redacted] today", after.Whole.Output)
}

// TestNumbersInOtherForms: programs write numbers as they like.
func TestNumbersInOtherForms(t *testing.T) {
	e := ended(`{"card": 4.111e15}`, tool.Result{Success: true, Output: "charged 4111000000000000", Data: json.RawMessage(`{"card":4111000000000000,"ok":true}`)})
	after := rule([]string{"/card"}, nil).Redact(e, nil).Record
	assert.Equal(t, "charged [redacted]", after.Result.Output)
	assert.JSONEq(t, `{"card":"[redacted]","ok":true}`, string(after.Result.Data))
}

// TestAttackManyValues: redacting a record with very many values does not keep others waiting. All of its texts are
// redacted then. The control is a record with fewer.
func TestAttackManyValues(t *testing.T) {
	for values, all := range map[int]bool{10: false, 50_000: true} {
		var list []string
		for n := range values {
			list = append(list, fmt.Sprintf("value-%d", n))
		}
		output := strings.Repeat("nothing of it here ", 50_000)
		began := time.Now()
		after := rule([]string{"/values"}, nil).Redact(ended(`{"values": `+(encoded(list))+`}`, succeeded(output)), nil)
		assert.Less(t, time.Since(began), 5*time.Second)
		assert.Equal(t, all, after.Record.Result.Output == redact.Marker)
	}
}

func TestDeclares(t *testing.T) {
	s := noerr.Get(schema.Compile([]byte(`{
		"type": "object", "additionalProperties": false, "required": ["card"],
		"properties": {
			"card": {"type": "string"}, "free": {"type": "object"}, "customer": {"$ref": "#/$defs/customer"},
			"tags": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
			"either": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"a": {}}}]},
			"more": {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "object"}}
		},
		"$defs": {"customer": {"type": "object", "properties": {"email": {"type": "string"}, "parent": {"$ref": "#/$defs/customer"}}}}
	}`)))(t)
	for pointer, want := range map[string]bool{
		"": true, "/card": true, "/crad": false, "/card/number": false, "/free/anything/at/all": true, "/customer/email": true,
		"/customer/mail": false, "/customer/parent/parent/email": true, "/customer/parent/parent/mail": false, "/tags/*/name": true,
		"/tags/0/name": true, "/tags/name": false, "/tags/0/nam": false, "/either/a": true, "/either/b": false, "/*/email": true,
		"/*/mail": true, "/more/b/c": true, "/*": true,
	} {
		assert.Equal(t, want, redact.Declares(s, pointer), pointer)
	}
}

// TestAttackRedactedValuesInInputs: what the host answered a call, which has its arguments, is not kept if the policy
// redacts records of its tool. The control is another tool.
func TestAttackRedactedValuesInInputs(t *testing.T) {
	policy, err := manifests.ParsePolicy("caisson.yaml", []byte("schema: caisson-config/v1\nredact: [{tools: [greet], arguments: [/who]}]\n"))
	require.NoError(t, err)
	inputs := json.RawMessage(`{"version":1,"log":"YW5u"}`)
	for name, kept := range map[string]bool{"greet": false, "other": true} {
		m, err := manifests.Parse("tool.yaml", []byte("schema: caisson/v1\nname: "+name+"\ndescription: A tool.\nmodule: {path: x.wasm}\nparameters: {type: object}\n"))
		require.NoError(t, err)
		entry := executor.Entry{Tool: name, Inputs: inputs}
		entry.Record.Function = tool.Function{Name: name, Arguments: `{"who":"ann"}`}
		redacted := redact.Rules(policy.Redact).Redact(entry, m)
		assert.Equal(t, kept, string(redacted.Inputs) == string(inputs))
		assert.Equal(t, kept, strings.Contains(string(redacted.Inputs), "YW5u"))
	}
}
