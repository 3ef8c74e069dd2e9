package jsonpath_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/wasm-tools/json/internal/document"
	"github.com/caisson-run/caisson/wasm-tools/json/internal/jsonpath"
)

// find returns what a query finds, as a JSON array, and the paths.
func find(t testing.TB, query, doc string) (values string, paths []string) {
	t.Helper()
	root, err := document.Parse(doc)
	require.NoError(t, err, doc)
	q, err := jsonpath.Parse(query)
	require.NoError(t, err, query)
	found, err := q.Find(root)
	require.NoError(t, err, query)
	array := document.NewArray()
	for _, m := range found {
		array.Elements = append(array.Elements, m.Value)
		paths = append(paths, m.Path())
	}
	values, err = array.Write(0)
	require.NoError(t, err)
	return values, paths
}

// Documents of RFC 9535.
const (
	store = `{"store":{"book":[
		{"category":"reference","author":"Nigel Rees","title":"Sayings of the Century","price":8.95},
		{"category":"fiction","author":"Evelyn Waugh","title":"Sword of Honour","price":12.99},
		{"category":"fiction","author":"Herman Melville","title":"Moby Dick","isbn":"0-553-21311-3","price":8.99},
		{"category":"fiction","author":"J. R. R. Tolkien","title":"The Lord of the Rings","isbn":"0-395-19395-8","price":22.99}],
		"bicycle":{"color":"red","price":399}}}`
	letters  = `["a","b","c","d","e","f","g"]`
	compared = `{"obj":{"x":"y"},"arr":[2,3]}`
	filtered = `{"a":[3,5,1,2,4,6,{"b":"j"},{"b":"k"},{"b":{}},{"b":"kilo"}],"o":{"p":1,"q":2,"r":3,"s":5,"t":{"u":6}},"e":"f"}`
	nested   = `{"o":{"j":1,"k":2},"a":[5,3,[{"j":4},{"k":6}]]}`
)

// TestExamplesOfTheStandard has the examples of RFC 9535. Where it leaves the order open, it is that of the document.
func TestExamplesOfTheStandard(t *testing.T) {
	const names = `{"o":{"j j":{"k.k":3}},"'":{"@":2}}`
	for _, test := range []struct{ query, doc, values string }{
		{`$.store.book[*].author`, store, `["Nigel Rees","Evelyn Waugh","Herman Melville","J. R. R. Tolkien"]`},
		{`$..author`, store, `["Nigel Rees","Evelyn Waugh","Herman Melville","J. R. R. Tolkien"]`},
		{`$.store..price`, store, `[8.95,12.99,8.99,22.99,399]`},
		{`$..book[2].author`, store, `["Herman Melville"]`},
		{`$..book[2].publisher`, store, `[]`},
		{`$..book[-1].title`, store, `["The Lord of the Rings"]`},
		{`$..book[0,1].price`, store, `[8.95,12.99]`},
		{`$..book[:2].price`, store, `[8.95,12.99]`},
		{`$..book[?@.isbn].price`, store, `[8.99,22.99]`},
		{`$..book[?@.price<10].price`, store, `[8.95,8.99]`},
		{`$`, `{"k":"v"}`, `[{"k":"v"}]`},
		{`$.o['j j']`, names, `[{"k.k":3}]`},
		{`$.o['j j']['k.k']`, names, `[3]`},
		{`$.o["j j"]["k.k"]`, names, `[3]`},
		{`$["'"]["@"]`, names, `[2]`},
		{`$.o[*]`, nested, `[1,2]`},
		{`$.o[*, *]`, nested, `[1,2,1,2]`},
		{`$.a[*]`, nested, `[5,3,[{"j":4},{"k":6}]]`},
		{`$[1]`, `["a","b"]`, `["b"]`},
		{`$[-2]`, `["a","b"]`, `["a"]`},
		{`$[1:3]`, letters, `["b","c"]`},
		{`$[5:]`, letters, `["f","g"]`},
		{`$[1:5:2]`, letters, `["b","d"]`},
		{`$[5:1:-2]`, letters, `["f","d"]`},
		{`$[::-1]`, letters, `["g","f","e","d","c","b","a"]`},
		{`$[0, 3]`, letters, `["a","d"]`},
		{`$[0:2, 5]`, letters, `["a","b","f"]`},
		{`$[0, 0]`, letters, `["a","a"]`},
		{`$.a[?@.b == 'kilo']`, filtered, `[{"b":"kilo"}]`},
		{`$.a[?(@.b == 'kilo')]`, filtered, `[{"b":"kilo"}]`},
		{`$.a[?@>3.5]`, filtered, `[5,4,6]`},
		{`$.a[?@.b]`, filtered, `[{"b":"j"},{"b":"k"},{"b":{}},{"b":"kilo"}]`},
		{`$[?@.*]`, filtered, `[[3,5,1,2,4,6,{"b":"j"},{"b":"k"},{"b":{}},{"b":"kilo"}],{"p":1,"q":2,"r":3,"s":5,"t":{"u":6}}]`},
		{`$[?@[?@.b]]`, filtered, `[[3,5,1,2,4,6,{"b":"j"},{"b":"k"},{"b":{}},{"b":"kilo"}]]`},
		{`$.o[?@<3, ?@<3]`, filtered, `[1,2,1,2]`},
		{`$.a[?@<2 || @.b == "k"]`, filtered, `[1,{"b":"k"}]`},
		{`$.a[?match(@.b, "[jk]")]`, filtered, `[{"b":"j"},{"b":"k"}]`},
		{`$.a[?search(@.b, "[jk]")]`, filtered, `[{"b":"j"},{"b":"k"},{"b":"kilo"}]`},
		{`$.o[?@>1 && @<4]`, filtered, `[2,3]`},
		{`$.o[?@.u || @.x]`, filtered, `[{"u":6}]`},
		{`$.a[?@.b == $.x]`, filtered, `[3,5,1,2,4,6]`},
		{`$.a[?@ == @]`, filtered, `[3,5,1,2,4,6,{"b":"j"},{"b":"k"},{"b":{}},{"b":"kilo"}]`},
		{`$..j`, nested, `[1,4]`},
		{`$..[0]`, nested, `[5,{"j":4}]`},
		{`$..o`, nested, `[{"j":1,"k":2}]`},
		{`$.o..[*, *]`, nested, `[1,2,1,2]`},
		{`$.a..[0, 1]`, nested, `[5,3,{"j":4},{"k":6}]`},
		{`$.a`, `{"a":null,"b":[null],"c":[{}],"null":1}`, `[null]`},
		{`$.a[0]`, `{"a":null}`, `[]`},
		{`$.b[?@==null]`, `{"b":[null]}`, `[null]`},
		{`$.c[?@.d==null]`, `{"c":[{}]}`, `[]`},
		{`$.null`, `{"null":1}`, `[1]`},
	} {
		values, _ := find(t, test.query, test.doc)
		assert.Equal(t, test.values, values, test.query)
	}
}

func TestComparisons(t *testing.T) {
	for condition, want := range map[string]bool{
		// RFC 9535, table 11.
		`$.absent1 == $.absent2`: true, `$.absent1 <= $.absent2`: true, `$.absent == 'g'`: false, `$.absent1 != $.absent2`: false, `$.absent != 'g'`: true,
		`1 <= 2`: true, `1 > 2`: false, `13 == '13'`: false, `'a' <= 'b'`: true, `'a' > 'b'`: false, `$.obj == $.arr`: false, `$.obj != $.arr`: true,
		`$.obj == $.obj`: true, `$.obj != $.obj`: false, `$.arr == $.arr`: true, `$.arr != $.arr`: false, `$.obj == 17`: false, `$.obj != 17`: true,
		`$.obj <= $.arr`: false, `$.obj < $.arr`: false, `$.obj <= $.obj`: true, `$.arr <= $.arr`: true, `1 <= $.arr`: false, `1 >= $.arr`: false,
		`1 > $.arr`: false, `1 < $.arr`: false, `true <= true`: true, `true > true`: false,
		// What else there is.
		`1 == 1.0e0`: true, `-0 == 0`: true, `0.1 < 0.10000000000000000001`: true, `'ä' == "\u00e4"`: true, `'\ud83d\ude00' > '\uffff'`: true, `null == null`: true,
		`!(1 == 1)`: false, `!$.absent`: true, `!$.obj`: false, `1 == 1 && 2 == 3 || 4 == 4`: true, `1 == 2 && (2 == 3 || 4 == 4)`: false,
		`length('äöü') == 3`: true, `length($.arr) == 2`: true, `length($.obj) == 1`: true, `length(1) == 1`: false, `length($.absent) == $.absent`: true,
		`count($.arr[*]) == 2`: true, `count($..*) == 7`: true, `value($..x) == 'y'`: true, `value($.arr[*]) == $.absent`: true,
		`match('ab', 'a.')`: true, `match('abc', 'a.')`: false, `search('xabc', 'a.')`: true, `match("a\n", 'a.')`: false, `match("a\r", 'a.')`: false, `match("a\u2028", 'a.')`: true,
		`match('a.', 'a[.]')`: true, `match('ab', 'a[.]')`: false, `match('ab', 'a\\.')`: false, `match('ab', 'a|b')`: false, `match(1, '1')`: false, `match($.absent, '')`: false,
		`match('é', '\\p{L}')`: true, `!match('b', 'a')`: true, `search('b', $.obj.x)`: false, `match('y', $.obj.x)`: true, `match('(', $.arr[0])`: false,
	} {
		values, _ := find(t, "$.probe[?"+condition+"]", strings.Replace(compared, `{`, `{"probe":[0],`, 1))
		assert.Equal(t, want, values == "[0]", condition)
	}
}

func TestPaths(t *testing.T) {
	_, paths := find(t, `$..[?@ == 1]`, `{"a":[0,1],"b'\\":{"\n\u000b\"ä":1}}`)
	assert.Equal(t, []string{`$['a'][1]`, `$['b\'\\']['\n\u000b"ä']`}, paths)
	for _, p := range paths { // a path is a query for the same
		values, again := find(t, p, `{"a":[0,1],"b'\\":{"\n\u000b\"ä":1}}`)
		assert.Equal(t, `[1]`, values)
		assert.Equal(t, []string{p}, again)
	}
}

func TestSlices(t *testing.T) {
	for query, want := range map[string]string{
		`$[:]`: letters, `$[::]`: letters, `$[:100]`: letters, `$[-100:]`: letters, `$[::0]`: `[]`, `$[2:1]`: `[]`, `$[-1:]`: `["g"]`, `$[:-5]`: `["a","b"]`, `$[-2::-3]`: `["f","c"]`,
		`$[100::-4]`: `["g","c"]`, `$[::9007199254740991]`: `["a"]`, `$[::-9007199254740991]`: `["g"]`, "$[ 1 : 4 : 2 ]": `["b","d"]`, `$[9007199254740991]`: `[]`, `$[-9007199254740991:2]`: `["a","b"]`, `$[:-100:-3]`: `["g","d","a"]`,
	} {
		values, _ := find(t, query, letters)
		assert.Equal(t, want, values, query)
	}
	values, _ := find(t, `$[::-1]`, `[]`)
	assert.Equal(t, `[]`, values)
	values, _ = find(t, `$[0,:,'a']`, `{"0":1,"b":2}`)
	assert.Equal(t, `[]`, values)
}

func TestMistakes(t *testing.T) {
	for query, want := range map[string]string{
		``:                                    "character 1: a query starts with $",
		`store.book`:                          "character 1: a query starts with $",
		`$.`:                                  "character 3: want a name or * after the dot, not end",
		`$.1`:                                 `character 3: want a name or * after the dot, not "1"`,
		`$.a-b`:                               `character 4: unexpected "-"; write names with other characters`,
		`$.ä b`:                               `character 4: unexpected " "`,
		`$[`:                                  "character 3: want a name in quotes, an index",
		`$[a]`:                                `character 3: want a name in quotes, an index`,
		`$[(@.length-1)]`:                     "character 3: want a selector, not a script; write -1",
		`$['a]`:                               "character 3: the string has no end; close it with '",
		`$['a' 'b']`:                          `character 7: want a comma or ], not "'"`,
		`$[0,]`:                               `character 5: want a name in quotes`,
		`$['\x']`:                             `character 5: want one of \b`,
		`$['\"']`:                             `character 5: want one of`,
		`$["\'"]`:                             `character 5: want one of`,
		`$['\ud800']`:                         "both halves of a surrogate pair",
		`$['\ud800\u0041']`:                   "both halves of a surrogate pair",
		`$['\udc00']`:                         "both halves of a surrogate pair",
		`$['\u00g0']`:                         "four hexadecimal digits",
		"$['a\nb']":                           "in place of a control character",
		`$[01]`:                               "character 3: want a whole number without leading zeros",
		`$[-0]`:                               "character 3: want a whole number without leading zeros",
		`$[-]`:                                "character 3: want a whole number",
		`$[1.0]`:                              `character 4: want a comma or ], not "."`,
		`$[9007199254740992]`:                 "the number is too large",
		`$[1:2:3:4]`:                          `want a comma or ], not ":"`,
		`$[?]`:                                `want a path such as @.name`,
		`$[?@.a = 1]`:                         "write == to compare",
		`$[?@.a & @.b]`:                       "write && for and",
		`$[?@.a | @.b]`:                       "write || for or",
		`$[?@.a and @.b]`:                     `want a comma or ], not "a"; the operators are`,
		`$[?@.a =~ 'x']`:                      "write match(@.name, 'pattern')",
		`$[?@.a == x]`:                        "there is no function or word x",
		`$[?@.a == True]`:                     `want a path such as @.name, a value or a function, not "T"`,
		`$[?1]`:                               "character 4: a filter tests whether a path exists",
		`$[?true]`:                            "character 4: a filter tests",
		`$[?'a' || @.b]`:                      "character 4: a filter tests",
		`$[?length(@.a)]`:                     "character 4: a filter tests",
		`$[?count(@.*)]`:                      "character 4: a filter tests",
		`$[?value(@.a)]`:                      "character 4: a filter tests",
		`$[?!@.a == 1]`:                       "character 4: write parentheses around the comparison",
		`$[?!!@.a]`:                           `want a path such as @.name`,
		`$[?(@.a]`:                            "want ), not",
		`$[?@.* == 1]`:                        "a path that is compared leads to one value",
		`$[?@..a == 1]`:                       "a path that is compared leads to one value",
		`$[?1 == @[0,1]]`:                     "a path that is compared leads to one value",
		`$[?@[0:1] == 1]`:                     "a path that is compared leads to one value",
		`$[?match(@.a,'x')==1]`:               "match and search cannot be compared",
		`$[?length(@.a, 1) > 1]`:              "length takes one argument",
		`$[?length() > 1]`:                    "length takes one argument",
		`$[?length (@.a) > 1]`:                "want ( right after length",
		`$[?length(@.*) > 1]`:                 "leads to one value",
		`$[?count(1) > 1]`:                    "count takes a path",
		`$[?count(length(@)) > 1]`:            "count takes a path",
		`$[?match(@.a)]`:                      "match takes two arguments",
		`$[?match(@.a, '(')]`:                 "error parsing regexp: missing closing ): `(`",
		`$[?search(@.a,)]`:                    "want a path such as",
		`$[?unknown(@.a)]`:                    "there is no function or word unknown; the functions are length, count",
		`$.a.length()`:                        `unexpected "("; write functions around a path`,
		`$[?@.a == 1 ]x`:                      `character 14: unexpected "x"`,
		`$...a`:                               "want a name or * after the dot",
		`$ `:                                  `unexpected " "`,
		`$[?@.a==01]`:                         `want a comma or ], not "1"`,
		`$[?` + strings.Repeat("(", 60):       "nest too deeply",
		`$[?` + strings.Repeat("@[?", 60):     "nest too deeply",
		`$[?` + strings.Repeat("length(", 60): "nest too deeply",
		`$` + strings.Repeat("[0]", 4000):     "the query has more than 10000 bytes",
	} {
		_, err := jsonpath.Parse(query)
		assert.ErrorContains(t, err, want, query)
	}
}

// TestQueriesThatTakeLong end with an error, soon.
func TestQueriesThatTakeLong(t *testing.T) {
	wide := "[" + strings.TrimSuffix(strings.Repeat(`[1,[2,{"a":"`+strings.Repeat("x", 50)+`"}]],`, 2000), ",") + "]"
	deep := strings.Repeat(`[0,`, 150) + "0" + strings.Repeat("]", 150)
	for query, doc := range map[string]string{
		`$` + strings.Repeat(`..*`, 12):                                       deep,
		`$` + strings.Repeat(`[*,*]`, 30):                                     deep,
		`$..[?$..[?$..[?@.a == value($..a)]]]`:                                wide,
		`$[?$[?$[?$ == $]]]`:                                                  wide,
		`$[?count($..*) == 1]`:                                                wide,
		`$..[?search($[0][1][1].a, '` + strings.Repeat("(x+)+", 100) + `y')]`: wide,
	} {
		root, err := document.Parse(doc)
		require.NoError(t, err)
		q, err := jsonpath.Parse(query)
		require.NoError(t, err)
		start := time.Now()
		_, err = q.Find(root)
		assert.ErrorContains(t, err, "the query looks at too many values", query)
		assert.Less(t, time.Since(start), 20*time.Second, query)
	}
}

// FuzzQuery: every query ends without a panic, and the path of each match leads to its value.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{`$..book[?@.price<10 && !@.isbn]['title',"x"]`, `$[1:5:-2,*]..a`, `$[?match(@.b,"[jk].") || length(@)>=1e0]`, `$[?count(@..*)==value($.a)]`} {
		f.Add(seed)
	}
	root, err := document.Parse(filtered)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, query string) {
		q, err := jsonpath.Parse(query)
		if err != nil {
			return
		}
		found, err := q.Find(root)
		if err != nil {
			return
		}
		for _, m := range found {
			same, err := jsonpath.Parse(m.Path())
			require.NoError(t, err)
			again, err := same.Find(root)
			require.NoError(t, err)
			require.Len(t, again, 1)
			require.Same(t, m.Value, again[0].Value)
		}
	})
}
