package answer

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/tool"
)

func TestStandardOutput(t *testing.T) {
	data := func(raw string) tool.Result { return tool.Result{Success: true, Output: raw, Data: []byte(raw)} }
	failed := func(says string) tool.Result { return tool.Result{Error: says} }
	for _, c := range []struct {
		mode   modules.Stdout
		output string
		want   tool.Result
	}{
		{modules.StdoutAuto, `{"success":true,"output":"4","data":{"value": 4}}`, tool.Result{Success: true, Output: "4", Data: []byte(`{"value":4}`)}},
		{modules.StdoutAuto, `{"succes\u0073":false,"error":"no"}`, failed("no")},
		{modules.StdoutAuto, `{"success":false,"error":"no"}`, failed("no")},
		{modules.StdoutAuto, `{"success":"yes"}`, data(`{"success":"yes"}`)},
		{modules.StdoutAuto, `{"Success":true}`, data(`{"Success":true}`)},
		{modules.StdoutAuto, "[1,2]\n", data("[1,2]")},
		{modules.StdoutAuto, "1\n2\n", tool.Result{Success: true, Output: "1\n2\n"}},
		{modules.StdoutAuto, "", tool.Result{Success: true}},
		{modules.StdoutAuto, "caf\xe9", tool.Result{Success: true, Output: "caf\uFFFD"}},
		{modules.StdoutText, `{"success":false}`, tool.Result{Success: true, Output: `{"success":false}`}},
		{modules.StdoutJSON, `{"success":false}`, data(`{"success":false}`)},
		{modules.StdoutJSON, `hello`, failed("not JSON")},
		{modules.StdoutJSON, ``, failed("not JSON")},
		{modules.StdoutResult, `{"success":true}`, tool.Result{Success: true}},
		{modules.StdoutAuto, `{"success":true,"temperature":12}`, tool.Result{Success: true, Data: []byte(`{"temperature":12}`)}},
		{modules.StdoutResult, `{"success":true,"error":"a part is missing","kind":"denied","unknown": [1, 2]}`,
			tool.Result{Success: true, Data: []byte(`{"kind":"denied","unknown":[1,2],"error":"a part is missing"}`)}},
		{modules.StdoutResult, `{"success":true,"error":"","data":[1],"unit":"°C"}`, tool.Result{Success: true, Data: []byte(`{"unit":"°C","data":[1]}`)}},
		{modules.StdoutResult, `{"success":false,"data":null,"error":"no","code":7}`, failed("no")},
		{modules.StdoutResult, `{ "a" : ",}" , "success" : true, "b":{"success":false},"output":"y","c":[1, 2] }`,
			tool.Result{Success: true, Output: "y", Data: []byte(`{"a":",}","b":{"success":false},"c":[1,2]}`)}},
		{modules.StdoutResult, `{"success":true,"content":[{"type":"image","data":"AQI=","mime_type":"image/png"}]}`,
			tool.Result{Success: true, Content: []tool.Content{{Type: "image", Data: []byte{1, 2}, MIMEType: "image/png"}}}},
		{modules.StdoutResult, `{"success":1}`, failed(`"success"`)},
		{modules.StdoutResult, `{"output":"x"}`, failed(`"success"`)},
		{modules.StdoutResult, `hello`, failed("JSON object")},
	} {
		got, err := readOutput(t.Context(), c.mode, []byte(c.output))
		if err != nil {
			got.Error = err.Error()
		}
		if c.want.Error != "" {
			assert.False(t, got.Success, c.output)
			assert.Contains(t, got.Error, c.want.Error, c.output)
			continue
		}
		assert.Equal(t, c.want, got.Result, "%s: %s", c.mode, c.output)
	}
}
