package tools_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/wasm-tools/internal/toolname"
)

// TestPropertyCSVIsReadAsItWasWritten: fields with quotes, separators, newlines and anything else come back as they
// are, in files that are many reads long, however they are written.
func TestPropertyCSVIsReadAsItWasWritten(t *testing.T) {
	s := openSQL(t)
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "é", "😀", "\"", "\"\"", ",", ";", "\t", "|", "\n", "\r\n", "\r", " ", "x y", "0", "\x00", "\xff", strings.Repeat("long ", 30)}
	for range testsize.Of(6, 100) {
		separator := []string{",", ";", "\t", "|"}[random.IntN(4)]
		newline := []string{"\n", "\r\n"}[random.IntN(2)]
		columns := 2 + random.IntN(5)
		var file strings.Builder
		file.WriteString([]string{"", "\uFEFF"}[random.IntN(2)])
		for i := range columns {
			fmt.Fprintf(&file, "%sc%d", []string{"", separator}[min(i, 1)], i)
		}
		file.WriteString(newline)
		var table [][]string
		size := random.IntN(3000)
		for len(table) < size {
			var row []string
			for range columns {
				var field strings.Builder
				for range random.IntN(4) {
					field.WriteString(pieces[random.IntN(len(pieces))])
				}
				row = append(row, field.String())
			}
			table = append(table, row)
		}
		// Text in every column, so that no column is one of numbers.
		table = append(table, strings.Split(strings.Repeat("text ", columns), " ")[:columns])
		for _, row := range table {
			for i, field := range row {
				if i > 0 {
					file.WriteString(separator)
				}
				if field == "" || strings.ContainsAny(field, "\",;\t|\r\n") || random.IntN(5) == 0 {
					field = `"` + strings.ReplaceAll(field, `"`, `""`) + `"`
				}
				file.WriteString(field)
			}
			file.WriteString(newline)
		}
		name := map[string]string{",": "t.csv", ";": "t.csv", "\t": "t.tsv", "|": "t.csv"}[separator]
		s.write(name, file.String())

		var fields []string
		for i := range columns {
			fields = append(fields, fmt.Sprintf("hex(c%d)", i))
		}
		sql := "SELECT " + strings.Join(fields, " || '-' || ") + " FROM data"
		at := 0
		for more := true; more; {
			got := s.query(toolname.DataAnalysis, object{"knowledge_id": name, "sql": sql, "limit": 1000, "offset": at})
			for _, row := range got.Rows {
				var want []string
				for _, field := range table[at] {
					want = append(want, fmt.Sprintf("%X", field))
				}
				require.JSONEq(t, `"`+strings.Join(want, "-")+`"`, string(row[0]), "row %d: %q", at+1, table[at])
				at++
			}
			more = got.Truncated
		}
		require.Len(t, table, at)
	}
}

// TestPropertyJSONLinesAreReadAsTheyWereWritten: values of all kinds, escaped in all ways, come back unchanged.
func TestPropertyJSONLinesAreReadAsTheyWereWritten(t *testing.T) {
	s := openSQL(t)
	random := rand.New(rand.NewPCG(3, 4))
	texts := []string{"a", "\"", "\\", "\n", "é", "😀", "\u2028", "\u0001", "/", "key"}
	value := func() any {
		switch random.IntN(7) {
		case 0:
			return nil
		case 1:
			return random.Int64() - random.Int64()
		case 2:
			return random.NormFloat64() * math.Pow(10, float64(random.IntN(40)-20))
		case 3:
			return map[string]any{"k": []any{1, nil, "]}\""}}
		}
		var text strings.Builder
		for range random.IntN(5) {
			text.WriteString(texts[random.IntN(len(texts))])
		}
		return text.String()
	}
	var file strings.Builder
	var table []map[string]any
	for range testsize.Of(900, 900) {
		row := map[string]any{}
		for _, key := range []string{"a", "b\"q", "c d", "é"} {
			if random.IntN(4) > 0 {
				row[key] = value()
			}
		}
		table = append(table, row)
		line, err := json.Marshal(row)
		require.NoError(t, err)
		file.WriteString(string(line) + []string{"\n", "\r\n", " \n\n"}[random.IntN(3)])
	}
	s.write("t.jsonl", file.String())
	got := s.query(toolname.DataAnalysis, object{"knowledge_id": "t.jsonl", "sql": `SELECT a, "b""q", "c d", "é" FROM data`, "limit": 1000})
	require.Len(t, got.Rows, len(table))
	for i, row := range got.Rows {
		for k, key := range []string{"a", "b\"q", "c d", "é"} {
			var cell any
			require.NoError(t, json.Unmarshal(row[k], &cell))
			switch want := table[i][key].(type) {
			case int64:
				require.Equal(t, strconv.FormatInt(want, 10), string(row[k]))
			case float64:
				if text, ok := cell.(string); ok { // an integer of more than 64 bits keeps its digits
					cell, _ = strconv.ParseFloat(text, 64)
				}
				require.Equal(t, want, cell)
			case map[string]any:
				text, err := json.Marshal(want)
				require.NoError(t, err)
				require.JSONEq(t, string(text), cell.(string))
			default:
				require.Equal(t, want, cell, "line %d", i+1)
			}
		}
	}
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// TestPropertyTypesOfColumns: a column has the type that all of its values have, as the README says it.
func TestPropertyTypesOfColumns(t *testing.T) {
	s := openSQL(t)
	values := []string{
		"", "0", "-0", "7", "-7", "007", "+7", " 7", "7 ", "1e3", "1E-3", "1e", "1.", ".5", "0.5", "-0.5", "0x10", "1_000", "1,5", "9007199254740992", "9007199254740993",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "1e308", "1e309", "1e-400", "123456789012345678.5",
		"0.1", "2.2250738585072014e-308", "1.7976931348623157e308", "179769313486231580793e289", "nan", "inf", "true", "-", "--1", "1-1", "2026-01-31", "x",
	}
	for _, one := range values {
		for _, other := range testsize.Sample(values, 4) {
			s.write("t.csv", fmt.Sprintf("v,w\n\"%s\",\n\"%s\",\n", one, other))
			var schema struct {
				Columns []struct{ Type string }
			}
			require.NoError(t, json.Unmarshal(s.call(toolname.DataSchema, object{"knowledge_id": "t.csv"}).Data, &schema))
			require.Equal(t, typeOfBoth(one, other), schema.Columns[0].Type, "%q and %q", one, other)
			got := s.query(toolname.DataAnalysis, object{"knowledge_id": "t.csv", "sql": "SELECT v FROM data"})
			for i, text := range []string{one, other} {
				var cell any
				require.NoError(t, json.Unmarshal(got.Rows[i][0], &cell))
				switch {
				case schema.Columns[0].Type == "TEXT":
					assert.Equal(t, text, cell)
				case text == "":
					assert.Nil(t, cell)
				default:
					want, err := strconv.ParseFloat(text, 64)
					require.NoError(t, err)
					assert.Equal(t, want, cell, text)
				}
			}
		}
	}
}

// typeOfBoth is a second reading of the README.
func typeOfBoth(values ...string) string {
	integers, reals, wide := 0, 0, false
	for _, v := range values {
		integer, notInteger := strconv.ParseInt(v, 10, 64)
		_, notReal := strconv.ParseFloat(v, 64)
		switch {
		case v == "":
		case !jsonNumber.MatchString(v):
			return "TEXT"
		case notInteger == nil:
			integers++
			wide = wide || integer > 1<<53 || integer < -1<<53
		case notReal != nil || !strings.ContainsAny(v, ".eE"):
			return "TEXT"
		default:
			reals++
		}
	}
	switch {
	case reals > 0 && wide, reals == 0 && integers == 0:
		return "TEXT"
	case reals > 0:
		return "REAL"
	}
	return "INTEGER"
}

// TestFilesThatAreWrong: the error for a malformed file describes the fault, with its line and the fix.
func TestFilesThatAreWrong(t *testing.T) {
	s := openSQL(t)
	for file, want := range map[string]struct{ name, words string }{
		"PK\x03\x04rest":                       {"a.csv", "it is a ZIP file, as spreadsheets are; export it as CSV"},
		"\x1f\x8brest":                         {"a.csv", "it is compressed with gzip; decompress it first"},
		"PAR1rest":                             {"a.csv", "it is a Parquet file; export it as CSV"},
		"\xff\xfea\x00":                        {"a.csv", "it is text in UTF-16; convert it to UTF-8"},
		"\n\r\n\n":                             {"a.csv", "the file is empty"},
		"a,b\n1,2\n\"x\"\"\n":                  {"a.csv", "line 3: the quote that opens in this record is not closed"},
		strings.Repeat("a,", 2001) + "a\n":     {"a.csv", "line 1: the record has more than 2000 fields"},
		"a\n" + strings.Repeat("x", 17<<20):    {"a.csv", "line 2: the record that begins here has more than 16 MiB; is a quote not closed?"},
		"a\x00b,c\n":                           {"a.csv", "the name of a column has a NUL character"},
		"[1]\n":                                {"a.jsonl", "line 1: this is not a JSON object; JSON Lines has one on each line"},
		"{\"a\":1}\n{\"a\":1,\"a\":2}\n":       {"a.jsonl", "line 2: the object has a member twice"},
		"{\"a\":01}\n":                         {"a.jsonl", "line 1: the object is not valid JSON"},
		"{\"a\":\"\t\"}\n":                     {"a.jsonl", "line 1: the object is not valid JSON"},
		"{\"a\":\"\\x\"}\n":                    {"a.jsonl", "line 1: the object is not valid JSON"},
		"{\"a\":\"\\u12\"}\n":                  {"a.jsonl", "line 1: the object is not valid JSON"},
		"{\"a\":1} {\"b\":2}\n":                {"a.jsonl", "line 1: something follows the object"},
		"{\"a\":1}\n\n{\"a\":1":                {"a.jsonl", "line 3: the object is not valid JSON"},
		"{\n  \"a\": 1\n}\n":                   {"a.jsonl", "line 1: the object is not valid JSON: it does not end on its line; JSON Lines has one object on each line"},
		"{\"a\":1}\n{\"a\":1,}\n":              {"a.jsonl", "line 2: the object is not valid JSON, at byte 8 of the line"},
		"{\"a\":" + strings.Repeat("[", 70000): {"a.jsonl", "line 1: the object is nested deeper than 64 levels, at byte 71 of the line"},
		"{\"a\\u0000\":1}\n":                   {"a.jsonl", "the name of a member has a NUL character in it"},
		"{}\n{}\n":                             {"a.jsonl", "the objects are empty, so there are no columns"},
		"a,b\r1,2\r":                           {"a.csv", "line 1: it has a carriage return (CR) without a newline (LF)"},
		"\"a\",\"b\"\r\"c\"\"d\",\"e\"\r":      {"a.csv", "line 1: it has a carriage return (CR) without a newline (LF)"},
		"sep=;\r\na;b\r\n\"\r\n":               {"a.csv", "line 3: the quote that opens in this record is not closed"},
	} {
		s.write(want.name, file)
		for _, name := range []string{toolname.DataSchema, toolname.DataAnalysis} {
			arguments := object{"knowledge_id": want.name}
			if name == toolname.DataAnalysis {
				arguments["sql"] = "SELECT * FROM data"
			}
			result := s.call(name, arguments)
			assert.False(t, result.Success, want.words)
			assert.Contains(t, result.Error, want.name+": ")
			assert.Contains(t, result.Error, want.words)
		}
	}
}

// TestNamesOfColumns: each column has a name that a statement can use, whatever the file calls it, and no other column
// takes a name that the file has.
func TestNamesOfColumns(t *testing.T) {
	s := openSQL(t)
	many := make([]string, 2000)
	for i := range many {
		if many[i] = "a"; i >= 1000 {
			many[i] = fmt.Sprintf("A_%d", i-998)
		}
	}
	for _, test := range []struct {
		name, file string
		columns    map[string]string // by name, the value of the only row
	}{
		{"a.csv", "id,ID,id,id_2,Id_2\n1,2,3,4,5\n", map[string]string{"id": "1", "ID_3": "2", "id_4": "3", "ID_2": "4", "Id_2_2": "5"}},
		{"a.csv", "column_2,,column_2_2\n1,2,3\n", map[string]string{"column_2": "1", "column_2_3": "2", "column_2_2": "3"}},
		{"a.csv", "caf\xe9,caf\xe8,\xe9\n1,2,3\n", map[string]string{"caf\uFFFD": "1", "caf\uFFFD_2": "2", "\uFFFD": "3"}},
		{"a.csv", strings.Join(many, ",") + "\n" + strings.Repeat("1,", 1999) + "2\n", map[string]string{"a": "1", "a_2": "1", "a_1001": "2", "a_2000": "1"}},
		{"a.csv", strings.Repeat("a,", 1999) + "a\n" + strings.Repeat("1,", 1999) + "2\n", map[string]string{"a": "1", "a_2000": "2"}},
		{"a.csv", "\uFEFFsep=|\r\na|b;c,d,e\r\n1|2\r\n", map[string]string{"a": "1", "b;c,d,e": "2"}},
		{"a.csv", "sep=;x\n1\n", map[string]string{"sep=": "1", "x": "null"}},
		{"a.jsonl", `{"":1," x":2,"x":3,"X":4,"x_2":5}`, map[string]string{"column_1": "1", " x": "2", "x": "3", "X_3": "4", "X_2": "5"}},
		{"a.jsonl", "{\"a\xe9\":1,\"a\xe8\":2}", map[string]string{"a\uFFFD": "1", "a\uFFFD_2": "2"}},
	} {
		s.write(test.name, test.file)
		for column, value := range test.columns {
			got := s.query(toolname.DataAnalysis, object{"knowledge_id": test.name, "sql": fmt.Sprintf("SELECT %q FROM data", column)})
			assert.Equal(t, value, got.text(), "%.80q: %s", test.file, column)
		}
	}
	s.write("a.csv", "Unit price,group,d\n1,x,2\n")
	result := s.call(toolname.DataAnalysis, object{"knowledge_id": "a.csv", "sql": "SELECT price FROM data"})
	assert.Equal(t, `no such column: price; texts stand in 'single quotes'; the columns of data are "Unit price", "group", d`, result.Error)
}

// TestTablesOfSeveralFiles: files are joined by index, and their names cannot be mistaken.
func TestTablesOfSeveralFiles(t *testing.T) {
	s := openSQL(t)
	var orders, customers strings.Builder
	orders.WriteString("customer,price\n")
	customers.WriteString("id,name\n")
	for i := range 20_000 {
		fmt.Fprintf(&orders, "%d,%d\n", i%5000, i)
		fmt.Fprintf(&customers, "%d,name %d\n", i, i)
	}
	s.write("orders.csv", orders.String())
	s.write("customers.csv", customers.String())
	// Without an index this compares 400 million pairs of rows.
	got := s.query(toolname.DataAnalysis, object{"knowledge_id": "orders.csv", "tables": object{"Customers": "customers.csv"},
		"sql": "SELECT name, sum(price) FROM data JOIN customers ON customer = id WHERE id = 4999 OR name = 'name 1' GROUP BY name ORDER BY 1"})
	assert.Equal(t, "\"name 1\" 30004\n\"name 4999\" 49996", got.text())
	for name, want := range map[string]string{
		"data": "choose another name", "DATA": "choose another name", "sqlite_x": "sqlite_x is reserved", "": "1 to 100 bytes", "file to load": "reserved",
		strings.Repeat("x", 101): "1 to 100 bytes",
	} {
		result := s.call(toolname.DataAnalysis, object{"knowledge_id": "orders.csv", "tables": object{name: "customers.csv"}, "sql": "SELECT 1"})
		assert.Contains(t, result.Error, want, "%q", name)
	}
	got = s.query(toolname.DataAnalysis, object{"knowledge_id": "orders.csv", "tables": object{`a "b" ]`: "customers.csv", "json_each": "customers.csv"},
		"sql": `SELECT count(*) FROM "a ""b"" ]" WHERE id < ?`, "params": []any{3}})
	assert.Equal(t, "3", got.text())
}
