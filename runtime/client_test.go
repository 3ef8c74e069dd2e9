package runtime

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

const clientsTool = "schema: caisson/v1\nname: ask_user\ndescription: Ask the user.\nexecution: client\nbehavior: {destructive: true, final: true}\nrequires: [DESK]\n"

func clients(t *testing.T, text string) *manifests.Manifest {
	t.Helper()
	m, err := manifests.Parse("ask_user.tool.yaml", []byte(text))
	require.NoError(t, err)
	return m
}

// TestRowS4_1DefinitionsAreLoadedAndNotRun: a tool that the client runs is a tool in all but that it
// has no module, and that nobody runs it here.
func TestRowS4_1DefinitionsAreLoadedAndNotRun(t *testing.T) {
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

	isolation, err := loaded.Isolation(t.Context())
	require.NoError(t, err)
	assert.Equal(t, Isolation{Reason: "the client runs it"}, isolation)
	info, err := InspectModule(m)
	require.NoError(t, err)
	assert.Equal(t, ModuleInfo{Imports: []string{}, Exports: []string{}, SeededGenerators: []string{}, Unused: []string{}}, info)

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

// TestRowS4_1FinalResultsAreLoaded: whether a result may be shown as it is changes nothing of how it
// comes about.
func TestRowS4_1FinalResultsAreLoaded(t *testing.T) {
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
	assert.Equal(t, want, identityOf(t, r, m, manifests.Grants{Approved: approvedBy("caisson.yaml:2", "ab")}), "no module is read for what is bound to one")
	assert.NotEqual(t, want, identityOf(t, r, clients(t, clientsTool+"parameters: {properties: {question: {type: string}}}\n"), manifests.Grants{}))
}
