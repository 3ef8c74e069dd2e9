package document_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/wasm-tools/json/internal/document"
)

func parse(t testing.TB, text string) *document.Node {
	t.Helper()
	n, err := document.Parse(text)
	require.NoError(t, err, text)
	return n
}

func write(t testing.TB, n *document.Node) string {
	t.Helper()
	text, err := n.Write(0)
	require.NoError(t, err)
	return text
}

func TestSyntaxErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "line 1, column 1: it ends too early",
		"{\n  \"ä\": }":    `line 2, column 8: want a value, not '}'`,
		`{"a": 1,}`:        `line 1, column 9: want a name in double quotes, not '}'; remove the comma before it`,
		`[1, ]`:            `line 1, column 5: want a value, not ']'; remove the comma before it`,
		`{'a': 1}`:         `line 1, column 2: want a name in double quotes, not '\''; write strings in double quotes`,
		"[1, // one\n2]":   `line 1, column 5: want a value, not '/'; JSON has no comments`,
		`[True]`:           `line 1, column 2: want a value, not 'T'; write true, false or null`,
		`[NaN]`:            `line 1, column 2: want a value, not 'N'; JSON has no such number, write null`,
		`{"a": undefined}`: `line 1, column 7: want a value, not 'u'; write null`,
		`1 2`:              `line 1, column 3: text follows the value; send one JSON value`,
		"{\"a\": 1,\n \"b\": {\"c\": 1, \"c\": 2}}": `line 2, column 16: the name "c" occurs twice in one object; remove one of the members`,
		`{"a": 1, "\u0061": 2}`:                     `line 1, column 10: the name "a" occurs twice in one object; remove one of the members`,
		`01`:                                        `line 1, column 2: text follows the value; send one JSON value`,
		strings.Repeat("[", 201):                    `line 1, column 201: arrays and objects are nested deeper than 200 levels`,
		`{"a": "x` + "\n" + `"}`:                    "line 1, column 9: want an escape such as \\n, not '\\n'",
		`{"a" 1}`:                                   `line 1, column 6: want a colon, not '1'`,
		`{"a": 1 "b": 2}`:                           `line 1, column 9: want a comma or }, not '"'`,
	} {
		_, err := document.Parse(text)
		assert.EqualError(t, err, want, text)
	}
}

// TestTextIsKept: order, digits and escapes are those of the text.
func TestTextIsKept(t *testing.T) {
	const text = `{"z":1.0,"a":[1e400,-0,100000000000000000001,"\u00e4\/"],"\u006d":{}}`
	assert.Equal(t, text, write(t, parse(t, " "+strings.ReplaceAll(text, ",", " ,\n"))))
	indented, err := parse(t, text).Write(2)
	require.NoError(t, err)
	assert.Equal(t, `{
  "z": 1.0,
  "a": [
    1e400,
    -0,
    100000000000000000001,
    "\u00e4\/"
  ],
  "\u006d": {}
}`, indented)
	sorted := parse(t, text)
	sorted.Sort()
	assert.Equal(t, `{"a":[1e400,-0,100000000000000000001,"\u00e4\/"],"\u006d":{},"z":1.0}`, write(t, sorted))
}

func TestEqual(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{`1`, `1.0`, true}, {`1`, `10e-1`, true}, {`100`, `1E2`, true}, {`0`, `-0.0e5`, true}, {`1`, `-1`, false}, {`1e400`, `1e401`, false},
		{`0.1`, `0.10000000000000000001`, false}, {`1e99999999999999999999`, `1e99999999999999999999`, true},
		{`1e-99999999999999999999`, `1e99999999999999999999`, false}, {`"ä"`, `"\u00e4"`, true}, {`"\ud800"`, `"\ud801"`, false}, {`"\ud800"`, `"\ud800"`, true},
		{`{"a":1,"b":2}`, `{"b":2.0,"a":1}`, true}, {`{"a":1}`, `{"a":1,"b":null}`, false}, {`{"a":null}`, `{"b":null}`, false}, {`[1,2]`, `[2,1]`, false},
		{`[]`, `{}`, false}, {`null`, `false`, false}, {`true`, `false`, false}, {`[]`, `[]`, true}, {`{}`, `{}`, true}, {`"1"`, `1`, false},
	} {
		a, b := parse(t, test.a), parse(t, test.b)
		assert.Equal(t, test.want, document.Equal(a, b), "%s %s", test.a, test.b)
		assert.Equal(t, test.want, document.Equal(b, a), "%s %s", test.b, test.a)
		assert.Equal(t, test.want, write(t, document.Diff(a, b)) == "[]", "%s %s: diff", test.a, test.b)
	}
}

func TestCompareNumbers(t *testing.T) {
	sorted := []string{"-1e5", "-1e2", "-99.5", "-99", "-1e-3", "0", "1e-999999999999999999999", "1e-3", "0.5", "0.51", "1", "1.0000000000000000001", "9", "10", "11e0", "1e2", "1e999999999999999999999"}
	for i, a := range sorted {
		for j, b := range sorted {
			assert.Equal(t, min(1, max(-1, i-j)), document.CompareNumbers(a, b), "%s %s", a, b)
		}
	}
}

// TestPointer has the examples of RFC 6901, section 5.
func TestPointer(t *testing.T) {
	doc := parse(t, `{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8,"~1":9}`)
	for pointer, want := range map[string]string{
		"": write(t, doc), "/foo": `["bar","baz"]`, "/foo/0": `"bar"`, "/": "0", "/a~1b": "1", "/c%d": "2", "/e^f": "3", "/g|h": "4", `/i\j`: "5", `/k"l`: "6", "/ ": "7", "/m~0n": "8", "/~01": "9",
	} {
		p, err := document.ParsePointer(pointer)
		require.NoError(t, err)
		value, err := p.Find(doc)
		require.NoError(t, err, pointer)
		assert.Equal(t, want, write(t, value))
		assert.Equal(t, pointer, p.String())
	}
	for pointer, want := range map[string]string{
		"foo":                       `"foo" is no JSON Pointer; start it with /`,
		"/a~b":                      "a ~ in a name is written ~0",
		"/a~":                       "a ~ in a name is written ~0",
		"/fo":                       `the document has no member "fo"; it has foo, , a/b`,
		"/foo/2":                    "/foo has no element 2; it has 2 elements",
		"/foo/-":                    "/foo: - is the place after the last element",
		"/foo/01":                   `/foo is an array, and "01" is no index`,
		"/foo/+1":                   `/foo is an array, and "+1" is no index`,
		"/foo/":                     `/foo is an array, and "" is no index`,
		"/foo/x":                    `/foo is an array, and "x" is no index`,
		"/foo/0/a":                  "/foo/0 is a string, which has no parts",
		"/foo/99999999999999999999": "/foo has no element 99999999999999999999",
	} {
		p, err := document.ParsePointer(pointer)
		if err == nil {
			_, err = p.Find(doc)
		}
		assert.ErrorContains(t, err, want, pointer)
	}
}

// TestPatch has the examples of RFC 6902, appendix A, and what else can happen.
func TestPatch(t *testing.T) {
	for _, test := range []struct{ doc, patch, want string }{
		{`{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux"}]`, `{"foo":"bar","baz":"qux"}`},
		{`{"foo":["bar","baz"]}`, `[{"op":"add","path":"/foo/1","value":"qux"}]`, `{"foo":["bar","qux","baz"]}`},
		{`{"baz":"qux","foo":"bar"}`, `[{"op":"remove","path":"/baz"}]`, `{"foo":"bar"}`},
		{`{"foo":["bar","qux","baz"]}`, `[{"op":"remove","path":"/foo/1"}]`, `{"foo":["bar","baz"]}`},
		{`{"baz":"qux","foo":"bar"}`, `[{"op":"replace","path":"/baz","value":"boo"}]`, `{"baz":"boo","foo":"bar"}`},
		{`{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}`, `[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]`, `{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}`},
		{`{"foo":["all","grass","cows","eat"]}`, `[{"op":"move","from":"/foo/1","path":"/foo/3"}]`, `{"foo":["all","cows","eat","grass"]}`},
		{`{"baz":"qux","foo":["a",2,"c"]}`, `[{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}]`, `{"baz":"qux","foo":["a",2,"c"]}`},
		{`{"foo":"bar"}`, `[{"op":"add","path":"/child","value":{"grandchild":{}}}]`, `{"foo":"bar","child":{"grandchild":{}}}`},
		{`{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux","xyz":123}]`, `{"foo":"bar","baz":"qux"}`},
		{`{"/":9,"~1":10}`, `[{"op":"test","path":"/~01","value":10}]`, `{"/":9,"~1":10}`},
		{`{"foo":["bar"]}`, `[{"op":"add","path":"/foo/-","value":["abc","def"]}]`, `{"foo":["bar",["abc","def"]]}`},
		{`{"a":1}`, `[{"op":"add","path":"","value":[1]},{"op":"replace","path":"/0","value":2}]`, `[2]`},
		{`{"a":{"b":1}}`, `[{"op":"copy","from":"/a","path":"/c"},{"op":"replace","path":"/c/b","value":2}]`, `{"a":{"b":1},"c":{"b":2}}`},
		{`{"a":1}`, `[{"op":"move","from":"/a","path":"/a"}]`, `{"a":1}`},
		{`{"a":{"b":1}}`, `[{"op":"move","from":"/a/b","path":"/a"}]`, `{"a":1}`},
		{`{"a":null}`, `[{"op":"test","path":"/a","value":null}]`, `{"a":null}`},
		{`[1]`, `[]`, `[1]`},
	} {
		got, err := document.Patch(parse(t, test.doc), parse(t, test.patch))
		require.NoError(t, err, test.patch)
		assert.Equal(t, test.want, write(t, got), test.patch)
	}
	for _, test := range []struct{ doc, patch, want string }{
		{`{"baz":"qux"}`, `[{"op":"test","path":"/baz","value":"bar"}]`, `operation 1 of 1: test /baz: the value is another one: "qux"`},
		{`{"foo":"bar"}`, `[{"op":"add","path":"/baz/bat","value":"qux"}]`, `operation 1 of 1: add /baz/bat: the document has no member "baz"`},
		{`{"/":9,"~1":10}`, `[{"op":"test","path":"/~01","value":"10"}]`, `the value is another one: 10`},
		{`[1]`, `[{"op":"add","path":"/2","value":2}]`, `the document has no element 2`},
		{`[1]`, `[{"op":"remove","path":"/-"}]`, `- is the place after the last element`},
		{`[1]`, `[{"op":"remove","path":""}]`, `the whole document cannot be removed`},
		{`{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":"/a/b"}]`, `from "/a" holds the path`},
		{`1`, `[{"op":"add","path":"/a","value":1}]`, `the document is a number, to which nothing can be added`},
		{`1`, `[{"op":"frob","path":""}]`, `op is "frob"; write add, remove, replace, move, copy or test`},
		{`1`, `[{"path":""}]`, `op is missing`},
		{`1`, `[{"op":1,"path":""}]`, `op is a number, not a string`},
		{`1`, `[{"op":"replace","path":"a","value":1}]`, `path: "a" is no JSON Pointer`},
		{`1`, `[{"op":"replace","path":""}]`, `value is missing`},
		{`1`, `[{"op":"copy","path":""}]`, `from is missing`},
		{`1`, `[1]`, `operation 1 of 1: it is a number, not an object`},
		{`1`, `[[]]`, `operation 1 of 1: it is an array, not an object`}, {`1`, `{}`, `not an object`}, {`1`, `null`, `not null`},
		{`1`, `{"a":1}`, `a JSON Patch is an array of operations`},
		{`{}`, `[{"op":"replace","path":"/a","value":1}]`, `the document has no member "a"; it is an empty object`},
	} {
		_, err := document.Patch(parse(t, test.doc), parse(t, test.patch))
		assert.ErrorContains(t, err, test.want, test.patch)
	}
}

// TestPatchesThatGrow: a few operations that double a document do not fill the memory.
func TestPatchesThatGrow(t *testing.T) {
	const double = `{"op":"copy","from":"","path":"/a"},{"op":"copy","from":"","path":"/b"}`
	_, err := document.Patch(parse(t, `{"c":"`+strings.Repeat("x", 1000)+`"}`), parse(t, "["+strings.Repeat(double+",", 40)+double+"]"))
	assert.ErrorContains(t, err, "the result would have more than 2097152 bytes")

	nest := strings.Repeat(`{"op":"add","path":"/a","value":{}},{"op":"move","from":"/a","path":""},`, 10)
	got, err := document.Patch(parse(t, `{}`), parse(t, "["+strings.TrimSuffix(nest, ",")+"]"))
	require.NoError(t, err)
	assert.Equal(t, `{}`, write(t, got))

	deep := `{"op":"copy","from":"","path":"/a"}`
	_, err = document.Patch(parse(t, strings.Repeat(`{"b":`, 190)+"1"+strings.Repeat("}", 190)), parse(t, `[{"op":"add","path":"`+strings.Repeat("/b", 180)+`","value":`+strings.Repeat("[", 30)+strings.Repeat("]", 30)+`},`+deep+`]`))
	assert.ErrorContains(t, err, "nests deeper than 200 levels")
}

// TestMergePatch has the test cases of RFC 7396, appendix A.
func TestMergePatch(t *testing.T) {
	for _, test := range []struct{ doc, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		assert.Equal(t, test.want, write(t, document.MergePatch(parse(t, test.doc), parse(t, test.patch))), test.patch)
	}
}

func TestMergeDiff(t *testing.T) {
	for _, test := range []struct{ doc, target, want string }{
		{`{"a":1,"b":{"c":2,"d":3}}`, `{"b":{"c":4,"d":3},"e":5}`, `{"a":null,"b":{"c":4},"e":5}`},
		{`{"a":1}`, `{"a":1.0}`, `{}`},
		{`{"a":null,"b":1}`, `{"a":null,"b":2}`, `{"b":2}`},
		{`{"a":1}`, `{"a":[null]}`, `{"a":[null]}`},
		{`1`, `{}`, `{}`},
		{`{"a":1}`, `{"a":{}}`, `{"a":{}}`},
	} {
		got, err := document.MergeDiff(parse(t, test.doc), parse(t, test.target))
		require.NoError(t, err)
		assert.Equal(t, test.want, write(t, got))
	}
	for _, target := range []string{`{"a":null}`, `{"b":{"c":null}}`} {
		_, err := document.MergeDiff(parse(t, `{"a":1,"b":2}`), parse(t, target))
		assert.ErrorContains(t, err, "a merge patch cannot set a member to null")
	}
}

func TestDiff(t *testing.T) {
	for _, test := range []struct{ doc, target, want string }{
		{`{"name":"Ada","tags":["x","y","z"],"n":1}`, `{"n":1.0,"name":"Eve","tags":["x","q","y","z"]}`,
			`[{"op":"replace","path":"/name","value":"Eve"},{"op":"add","path":"/tags/1","value":"q"}]`},
		{`[{"id":1,"name":"a long name"},{"id":2,"name":"another one"},{"id":3,"name":"and a third"}]`, `[{"id":2,"name":"another one"},{"id":3,"name":"and the third"}]`,
			`[{"op":"remove","path":"/0"},{"op":"replace","path":"/1/name","value":"and the third"}]`},
		{`{"a/b":{"~":1,"x":"` + strings.Repeat("x", 100) + `"}}`, `{"a/b":{"~":2,"x":"` + strings.Repeat("x", 100) + `"}}`, `[{"op":"replace","path":"/a~1b/~0","value":2}]`},
		{`{"a":[1,2,3]}`, `{"a":{}}`, `[{"op":"replace","path":"/a","value":{}}]`},
		{`{"a":{"b":1,"c":2,"d":3}}`, `{"a":{"e":1}}`, `[{"op":"replace","path":"/a","value":{"e":1}}]`},
		{`[]`, `[]`, `[]`},
	} {
		assert.Equal(t, test.want, write(t, document.Diff(parse(t, test.doc), parse(t, test.target))))
	}
}

// random writes a value.
func random(r *rand.Rand, depth int) string {
	kinds := 8
	if depth == 0 {
		kinds = 6
	}
	switch r.IntN(kinds) {
	case 0:
		return "null"
	case 1:
		return strconv.FormatBool(r.IntN(2) == 0)
	case 2:
		return []string{"0", "1", "1.0", "1e0", "-7", "1e400"}[r.IntN(6)]
	case 3, 4, 5:
		return []string{`""`, `"a"`, `"\u0061"`, `"~/\n"`, `"a long text that is repeated"`}[r.IntN(5)]
	case 6:
		elements := make([]string, r.IntN(6))
		for i := range elements {
			elements[i] = random(r, depth-1)
		}
		return "[" + strings.Join(elements, ",") + "]"
	}
	var members []string
	for _, name := range []string{"a", "b", "c", "~", "/", "", "ä"} {
		if r.IntN(2) == 0 {
			members = append(members, strconv.Quote(name)+":"+random(r, depth-1))
		}
	}
	r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, ",") + "}"
}

// TestDiffsMakeTheTarget: applying a diff of two random documents to the first one gives the second one.
func TestDiffsMakeTheTarget(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	merged, empty := 0, 0
	for range 3000 {
		from, to := random(r, 3), random(r, 3)
		if r.IntN(20) == 0 {
			to = from
		}
		checkDiffs(t, from, to, &merged, &empty)
	}
	assert.Greater(t, merged, 500)
	assert.Greater(t, empty, 100)
}

// TestFlattenedPointersLead: each pointer of a flattened document leads to its value in the document.
func TestFlattenedPointersLead(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	values := 0
	for range 500 {
		text := random(r, 4)
		checkPointers(t, text, &values)
	}
	assert.Greater(t, values, 1000)
}

func checkPointers(t *testing.T, text string, values *int) {
	n := parse(t, text)
	flat, err := n.Flatten()
	require.NoError(t, err)
	for _, member := range flat.Members {
		p, err := document.ParsePointer(member.Name)
		require.NoError(t, err, member.Name)
		found, err := p.Find(n)
		require.NoError(t, err, member.Name)
		require.Same(t, member.Value, found)
		*values++
	}
}

func checkDiffs(t *testing.T, from, to string, merged, empty *int) {
	target := parse(t, to)
	patch := document.Diff(parse(t, from), target)
	got, err := document.Patch(parse(t, from), parse(t, write(t, patch)))
	require.NoError(t, err, "%s %s", from, to)
	require.True(t, document.Equal(target, got), "%s %s %s", from, to, write(t, patch))
	require.Equal(t, document.Equal(parse(t, from), target), patch.Len() == 0)
	if patch.Len() == 0 {
		*empty++
	}
	patch, err = document.MergeDiff(parse(t, from), target)
	if err != nil {
		return
	}
	*merged++
	got = document.MergePatch(parse(t, from), parse(t, write(t, patch)))
	require.True(t, document.Equal(target, got), "%s %s %s", from, to, write(t, patch))
}

// FuzzDiff: diffs of arbitrary documents lead to the target. A document is written as the standard library compacts it,
// and reads as equal after it was written with indentation.
func FuzzDiff(f *testing.F) {
	f.Add(`{"a":[1,{"b":"\ud800"}]}`, `{"a":[{"b":"\ud801"},1e1]}`)
	f.Add(`[[],[[]]]`, `[[[]],{}]`)
	f.Fuzz(func(t *testing.T, from, to string) {
		n, err := document.Parse(from)
		if err != nil {
			return
		}
		var compacted bytes.Buffer
		require.NoError(t, json.Compact(&compacted, []byte(from)))
		require.Equal(t, compacted.String(), write(t, n))
		indented, err := n.Write(3)
		require.NoError(t, err)
		require.True(t, document.Equal(n, parse(t, indented)))
		if _, err := document.Parse(to); err == nil {
			var merged, empty, values int
			checkDiffs(t, from, to, &merged, &empty)
			checkPointers(t, to, &values)
		}
		if patched, err := document.Patch(parse(t, from), parse(t, "["+from+"]")); err == nil {
			write(t, patched)
		}
	})
}
