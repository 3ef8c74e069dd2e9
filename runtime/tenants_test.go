package runtime

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// tenant is one of two tenants that use the same module at the same time, each with a separate directory, variable,
// secret and host.
type tenant struct {
	name, secret string
	dir          string
	guest        *Tool
}

// twoTenants loads one manifest twice, with different grants. The server tells each caller whose
// secret it came with.
func twoTenants(t *testing.T, r *Runtime, m *manifests.Manifest, grant manifests.NetworkGrant) []*tenant {
	t.Helper()
	var all []*tenant
	for _, name := range []string{"ALICE", "BOB"} {
		one := &tenant{name: name, secret: name + "-has-a-secret-of-her-own", dir: t.TempDir()}
		require.NoError(t, os.WriteFile(filepath.Join(one.dir, "whose.txt"), []byte("the file of "+name), 0o600))
		one.guest = load(t, r, m, manifests.Grants{
			Files:   []manifests.FileGrant{manifests.GrantDirectory("/project", one.dir, manifests.AccessRead)},
			Network: []manifests.NetworkGrant{grant},
			Secrets: []manifests.SecretGrant{{Name: "KEY", From: manifests.SecretSource{Env: name}, Host: "api.example.com"}},
			Env:     []manifests.EnvGrant{{Name: "TENANT", Value: "variable of " + name}},
		})
		all = append(all, one)
	}
	return all
}

// call makes a tenant's call. seen is its whole record.
func (one *tenant) call(t testing.TB) (seen string, outcome tool.Outcome, err error) {
	outcome, err = invoke(t, one.guest, `{"steps":[
		{"do":"file","name":"/project/whose.txt"},{"do":"env","name":"TENANT"},
		{"do":"net","requests":[`+get("https://api.example.com/whose")+`,`+get("https://api.example.com/private/"+one.name)+`]},
		{"do":"file","name":"/project/absent-of-`+one.name+`.txt"}]}`)
	return asJSON(t, outcome), outcome, err
}

// foreign describes data of another tenant that one call shows, or returns "".
func (one *tenant) foreign(seen string, all []*tenant) string {
	for _, other := range all {
		if other != one && strings.Contains(seen, other.name) {
			return fmt.Sprintf("%s sees something of %s: %s", one.name, other.name, seen)
		}
	}
	return ""
}

// hammerTenants makes concurrent calls of all tenants, and returns the data of other tenants that they saw.
func hammerTenants(t *testing.T, all []*tenant, calls int) []string {
	t.Helper()
	var mu sync.Mutex
	var leaks []string
	var callers sync.WaitGroup
	for range 4 {
		for _, one := range all {
			callers.Go(func() {
				for range calls {
					seen, outcome, err := one.call(t)
					mu.Lock()
					if assert.NoError(t, err, outcome.Result.Error) && strings.Count(seen, one.name) < 5 {
						leaks = append(leaks, one.name+" does not see its own: "+seen)
					}
					if leak := one.foreign(seen, all); leak != "" {
						leaks = append(leaks, leak)
					}
					mu.Unlock()
				}
			})
		}
	}
	callers.Wait()
	return leaks
}

const tenantManifest = `permissions:
  files: [{path: /project, access: read}]
  network: [{host: api.example.com, paths: [/whose]}]
  secrets: [{name: KEY, header: X-Api-Key, host: api.example.com}]
  env: [TENANT]
behavior: {snapshot: start}`

// whose answers with the tenant that a request's secret belongs to.
func whose(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(r.Header.Get("X-Api-Key"), "-")
	_, _ = io.WriteString(w, "the account of "+name+", with key "+r.Header.Get("X-Api-Key"))
}

func tenantRuntime(t *testing.T) *Runtime {
	return newRuntime(t, Options{LookupEnv: func(name string) (string, bool) { return name + "-has-a-secret-of-her-own", true }})
}

// TestTenantsDoNotMeet: two tenants with one tool never see each other's directories, secrets,
// variables or records, whatever instances and connections their calls share.
func TestTenantsDoNotMeet(t *testing.T) {
	all := twoTenants(t, tenantRuntime(t), manifest(t, netprobe, tenantManifest), serve(t, whose))
	assert.Empty(t, hammerTenants(t, all, testsize.Of(10, 25)))
	assert.True(t, isolationOf(t, all[0].guest).Resumed, "they share the started program")
}

// TestTenantsControl: where one tenant's calls run on the other's permit, the hammer says so.
func TestTenantsControl(t *testing.T) {
	for seen, mix := range map[string]func(mine, theirs *Tool){
		"the file of BOB":    func(mine, theirs *Tool) { mine.outline = theirs.outline },
		"the account of BOB": func(mine, theirs *Tool) { mine.permit.Network = theirs.permit.Network },
		"variable of BOB":    func(mine, theirs *Tool) { mine.permit.Environment = theirs.permit.Environment },
	} {
		all := twoTenants(t, tenantRuntime(t), manifest(t, netprobe, tenantManifest), serve(t, whose))
		mix(all[0].guest, all[1].guest)
		leaks := hammerTenants(t, all, 1)
		require.NotEmpty(t, leaks)
		assert.Contains(t, leaks[0], seen)
	}
}
