package rest_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/server/rest"
	"github.com/caisson-run/caisson/tool"
)

// TestAttackKeysOfTwoServers: a request with a key is sent to two servers with one ledger at once, and to a third after
// they have ended. It is answered once. The control has a key for each.
func TestAttackKeysOfTwoServers(t *testing.T) {
	const requests = 25
	servers := []*world{newWorld(t, rest.Options{})}
	servers = append(servers, replicaOf(t, servers[0], rest.Options{}))
	ids := make([][]string, len(servers))
	var sent sync.WaitGroup
	for i, w := range servers {
		ids[i] = make([]string, requests)
		for n := range requests {
			sent.Go(func() {
				body := fmt.Sprintf(`{"name":"echo","arguments":{"n":%d}}`, n)
				ids[i][n] = of[tool.Record](w.request("POST", "/v1/calls", "ada", body, "Idempotency-Key", fmt.Sprint(n)), 200).CallID
			})
		}
	}
	sent.Wait()
	assert.Equal(t, ids[0], ids[1])
	third := replicaOf(t, servers[0], rest.Options{})
	again := third.request("POST", "/v1/calls", "ada", `{"name":"echo","arguments":{"n":0}}`, "Idempotency-Key", "0")
	assert.Equal(t, ids[0][0], of[tool.Record](again, 200).CallID)
	assert.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
	assert.Equal(t, 422, third.request("POST", "/v1/calls", "ada", `{"name":"echo"}`, "Idempotency-Key", "0").status)
	for _, as := range []string{"bob", "mallory"} {
		other := third.request("POST", "/v1/calls", as, `{"name":"echo","arguments":{"n":0}}`, "Idempotency-Key", "0")
		assert.NotEqual(t, ids[0][0], of[tool.Record](other, 200).CallID, "the control")
		require.Empty(t, other.header.Get("Idempotent-Replayed"))
	}
}
