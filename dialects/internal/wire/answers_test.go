package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/tool"
)

func TestAnswersAreGathered(t *testing.T) {
	r := Reader{Op: "answers", Dialect: "x"}
	sort := func(answers *Answers, path string, element *json.RawMessage) error {
		switch string(*element) {
		case `"named"`:
			return answers.AddNamed(path, dialects.NamedOutput{Tool: path})
		case `"approval"`:
			return answers.AddApproval(path, tool.Approval{CallID: path})
		case `"output"`:
			return answers.Add(path, tool.Answer{CallID: path})
		}
		return answers.Fail(path, "is strange")
	}
	found, err := ReadAnswers(r, []byte(`["named","output","approval","output"]`), "under", sort)
	require.NoError(t, err)
	assert.Equal(t, dialects.Answers{
		Outputs: []tool.Answer{{CallID: "[1]"}, {CallID: "[3]"}}, Named: []dialects.NamedOutput{{Tool: "[0]"}}, Approvals: []tool.Approval{{CallID: "[2]"}},
	}, found)
	found, err = ReadAnswers(r, []byte(`[]`), "under", sort)
	require.NoError(t, err)
	assert.Equal(t, dialects.Answers{Outputs: []tool.Answer{}, Named: []dialects.NamedOutput{}, Approvals: []tool.Approval{}}, found)

	// All that there are count, of whichever kind.
	most := strings.Repeat(`"named","output","approval","output",`, dialects.MaxCalls/4)
	_, err = ReadAnswers(r, []byte("["+strings.TrimSuffix(most, ",")+"]"), "under", sort)
	require.NoError(t, err)
	for _, last := range []string{`"named"`, `"output"`, `"approval"`} {
		found, err = ReadAnswers(r, []byte("["+most+last+"]"), "under", sort)
		require.EqualError(t, err, "x answers: [4096]: is one answer too many; there can be 4096")
		assert.Empty(t, found)
	}
	found, err = ReadAnswers(r, []byte(`["output",{}]`), "under", sort)
	require.EqualError(t, err, "x answers: [1]: is strange")
	assert.Empty(t, found, "all or nothing")

	for document, want := range map[string]string{`{"under":["output"]}`: "under[0]", `"output"`: "", `["output"]`: "[0]"} {
		found, err = ReadAnswers(r, []byte(document), "under", sort)
		require.NoError(t, err)
		assert.Equal(t, want, found.Outputs[0].CallID)
	}
	for _, document := range []string{`{"under":["output"],"type":"x"}`, `{"under":null}`, `{"under":1}`, `{"under":["output"],"under":["output"]}`} {
		_, err = ReadAnswers(r, []byte(document), "under", sort)
		require.Error(t, err, document)
	}
}
