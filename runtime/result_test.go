package runtime

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// TestWritable: the directories that calls may write to are those that are asked for, granted and not
// bounded, for the context values at hand.
func TestWritable(t *testing.T) {
	spaces, data := t.TempDir(), t.TempDir()
	grants := manifests.Grants{Files: []manifests.FileGrant{
		manifests.GrantDirectory("/project", filepath.Join(spaces, "{project_id}"), manifests.AccessReadWrite),
		manifests.GrantDirectory("/data", data, manifests.AccessReadWrite),
		manifests.GrantDirectory("/granted", t.TempDir(), manifests.AccessReadWrite),
		manifests.GrantDirectory("/seen", t.TempDir(), manifests.AccessRead),
	}}
	m := manifest(t, probe, `permissions:
  files:
    - {path: /project, access: read-write}
    - {path: /data, access: read-write}
    - {path: /granted, access: read}
    - {path: /seen, access: read-write}
`)
	demo := map[string]string{"project_id": "demo"}
	tool := load(t, newRuntime(t, Options{}), m, grants)
	assert.ElementsMatch(t, []string{filepath.Join(spaces, "demo"), data}, tool.Writable(demo))
	assert.Equal(t, []string{data}, tool.Writable(nil), "such a call gets no project")
	assert.Equal(t, []string{data}, tool.Writable(map[string]string{"project_id": ".."}))
	grants.NoWrites = "strict"
	assert.Empty(t, load(t, newRuntime(t, Options{}), m, grants).Writable(demo))
}

const clientsTool = "schema: caisson/v1\nname: ask_user\ndescription: Ask the user.\nexecution: client\nbehavior: {destructive: true, final: true}\nrequires: [DESK]\n"

func clients(t *testing.T, text string) *manifests.Manifest {
	t.Helper()
	m, err := manifests.Parse("ask_user.tool.yaml", []byte(text))
	require.NoError(t, err)
	return m
}

// TestDefinitionsAreLoadedAndNotRun: a tool that the client runs is like any other, except that it has no module and
// that the runtime does not run it.
func TestDefinitionsAreLoadedAndNotRun(t *testing.T) {
	r := newRuntime(t, Options{Settings: []string{"DESK"}})
	m := clients(t, clientsTool)
	require.Empty(t, Check(m))
	loaded := load(t, r, m, manifests.Grants{Ask: []string{"caisson.yaml:1"}, Approved: approvedBy("caisson.yaml:2", "")})
	assert.Same(t, m, loaded.Manifest())
	assert.Empty(t, loaded.Unavailable())
	assert.Empty(t, loaded.Decisions())
	assert.Zero(t, loaded.Limits(), "nothing here bounds its calls")
	assert.Empty(t, loaded.Asks(), "the client is told of each call")
	require.NoError(t, loaded.Prepare(t.Context()))

	isolation := isolationOf(t, loaded)
	assert.Equal(t, Isolation{Reason: "the client runs it"}, isolation)
	info := inspect(t, m)
	assert.Equal(t, ModuleInfo{Imports: []string{}, Exports: []string{}, Libraries: []LibraryInfo{}, SeededGenerators: []string{}, Unused: []string{}, HostFunctions: []string{}}, info)

	outcome, err := invoke(t, loaded, "{}")
	require.ErrorIs(t, err, tool.Denied)
	var failure *tool.Error
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, failure.Message, outcome.Result.Error)
	assert.Equal(t, tool.Denied, outcome.Result.Kind)
	assert.Contains(t, outcome.Result.Error, "the client runs this tool")
	require.Len(t, outcome.Denials, 1)
	assert.Equal(t, "execution", outcome.Denials[0].Permission)
	require.NoError(t, loaded.Close(t.Context()))
}

// TestFinalResultsAreLoaded: a final result is shown unchanged, and is made like any other.
func TestFinalResultsAreLoaded(t *testing.T) {
	m := manifest(t, probe, "behavior: {final: true}")
	require.Empty(t, Check(m))
	assert.True(t, load(t, newRuntime(t, Options{}), m, manifests.Grants{}).Manifest().Behavior.Final)
}

func TestToolOfAClientMayLackASetting(t *testing.T) {
	loaded := load(t, newRuntime(t, Options{}), clients(t, clientsTool), manifests.Grants{})
	assert.Equal(t, "needs the setting DESK", loaded.Unavailable())
}

func TestIdentityOfAToolOfAClient(t *testing.T) {
	r := newRuntime(t, Options{})
	m := clients(t, clientsTool)
	want := identityOf(t, r, m, manifests.Grants{})
	assert.Equal(t, want, identityOf(t, r, m, manifests.Grants{Approved: approvedBy("caisson.yaml:2", "ab")}), "no module is read for a binding to one")
	assert.NotEqual(t, want, identityOf(t, r, clients(t, clientsTool+"parameters: {properties: {question: {type: string}}}\n"), manifests.Grants{}))
}

// TestMembersThatTheSchemaRefusesAreLeftOut: data that fits its schema is used without the additional members, and
// people see what the program does not get.
func TestMembersThatTheSchemaRefusesAreLeftOut(t *testing.T) {
	strict := `result: {type: object, properties: {files: {type: array}}, additionalProperties: false}`
	for output, want := range map[string][2]string{
		`{"success":true,"data":{"files":[]},"took_ms":3}`: {`{"files":[]}`, "[left out of the result: \"took_ms\"]\n"},
		`{"success":true,"files":[]}`:                      {`{"files":[]}`, ""},
	} {
		outcome := mustInvoke(t, load(t, newRuntime(t, Options{}), manifest(t, probe, strict), manifests.Grants{}), printing(t, output))
		assert.Equal(t, want, [2]string{string(outcome.Result.Data), outcome.Log}, "%s: %s", output, outcome.Result.Error)
	}
	list := load(t, newRuntime(t, Options{}), manifest(t, probe, `result: {type: array}`), manifests.Grants{})
	outcome := mustInvoke(t, list, printing(t, `{"success":true,"data":[1],"next":"b"}`))
	assert.Equal(t, `[1]`, string(outcome.Result.Data), outcome.Result.Error)
	assert.Contains(t, outcome.Log, `[left out of the result: "next"]`)
	outcome = mustInvoke(t, list, printing(t, `{"success":true,"data":1,"next":"b"}`))
	assert.Contains(t, outcome.Result.Error, "result schema")
}

// printing returns the arguments with which the probe prints a text.
func printing(t *testing.T, text string) string {
	t.Helper()
	quoted, err := json.Marshal(text)
	require.NoError(t, err)
	return `{"do":"print","text":` + string(quoted) + `}`
}
