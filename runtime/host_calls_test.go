package runtime

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/hostfuncs/journal"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

const everyHostCall = `permissions:
  network: [{host: api.example.com}]
  files: [{path: /project, access: read}]
  secrets: [{name: KEY, header: X-Key, host: api.example.com}]`

// asksEverything loads a tool that may be refused what it asks for, but not be broken by it.
func asksEverything(t *testing.T) *Tool {
	grant := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") })
	r := newRuntime(t, Options{LookupEnv: func(string) (string, bool) { return "a value of some length", true }})
	return load(t, r, manifest(t, netprobe, everyHostCall), manifests.Grants{
		Network: []manifests.NetworkGrant{grant},
		Files:   []manifests.FileGrant{{Path: "/project", Host: t.TempDir()}},
		Secrets: []manifests.SecretGrant{{Name: "KEY", Host: "api.example.com", From: manifests.SecretSource{Env: "KEY"}}},
	})
}

// TestHostCallsStandInTheirOrder: the record lists what a call did in the order in which it did
// it, whichever package did it for the guest.
func TestHostCallsStandInTheirOrder(t *testing.T) {
	file, net, secret := `{"do":"file","name":"/project/absent.txt"}`, `{"do":"net","requests":[`+get("https://api.example.com/")+`]}`, `{"do":"secret","name":"KEY"}`
	outcome := mustInvoke(t, asksEverything(t), `{"steps":[`+file+`,`+net+`,`+secret+`,`+net+`,`+file+`]}`)
	var kinds []string
	for i, c := range outcome.HostCalls {
		kinds = append(kinds, c.Kind)
		assert.False(t, c.Began.IsZero(), "%+v", c)
		assert.True(t, i == 0 || !c.Began.Before(outcome.HostCalls[i-1].Began))
	}
	assert.Equal(t, []string{"files.open", "network.request", "secrets.exists", "network.request", "files.open"}, kinds)
	assert.EqualValues(t, len(kinds), outcome.Usage.HostCalls)
}

// TestManyHostCallsAreCountedAndNotListed: a guest that asks without end fills no record.
func TestManyHostCallsAreCountedAndNotListed(t *testing.T) {
	many := ""
	for i := range tool.MaxHostCalls {
		many += fmt.Sprintf(`{"do":"secret","name":"KEY"},{"do":"secret","name":"ABSENT_%d"},{"do":"file","name":"/project/absent.txt"},`, i)
	}
	outcome := mustInvoke(t, asksEverything(t), `{"steps":[`+many+`{"do":"secret","name":"KEY"}]}`)
	assert.Len(t, outcome.HostCalls, tool.MaxHostCalls)
	assert.EqualValues(t, 3*tool.MaxHostCalls+1, outcome.Usage.HostCalls)
	assert.Len(t, outcome.Denials, journal.MaxDenials)
}
