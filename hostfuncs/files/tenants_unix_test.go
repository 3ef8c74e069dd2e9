//go:build unix

package files_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/manifests"
)

// tenancy is a tool that two tenants use at once, each with its own directory. All that
// a tenant writes bears its name, in contents and in file names.
type tenancy struct {
	t     *testing.T
	world *world
	store *files.Store
	// directory says whose directory a round of a tenant is given: its own, where nothing is wrong.
	directory func(tenant string, round int) string
	crossings atomic.Int64 // observed effects of one tenant on the other
	full      atomic.Int64 // operations of the greedy tenant that its quota rejected
}

const (
	greedy, modest = "alice", "bob"
	tenantQuota    = 20_000
)

func newTenancy(t *testing.T, directory func(tenant string, round int) string) *tenancy {
	return &tenancy{t: t, world: newWorld(t, "alice/", "bob/"), store: files.NewStore(nil), directory: directory}
}

// hammer has 4 calls of each tenant at work at any time.
func (n *tenancy) hammer() {
	const workers, rounds = 4, 60
	var group sync.WaitGroup
	for worker := range workers {
		for _, tenant := range []string{greedy, modest} {
			group.Go(func() {
				for round := range rounds {
					n.call(tenant, worker, round)
				}
			})
		}
	}
	group.Wait()
}

// call is one call of a tenant.
func (n *tenancy) call(tenant string, worker, round int) {
	m := files.Mount{Guest: guestPath("/project"), Host: template(n.t, n.world.project+"/{id}"), Access: manifests.AccessReadWrite, Quota: manifests.Quota{Bytes: tenantQuota}}
	view, err := openIn(context.Background(), n.store, []files.Mount{m}, map[string]string{"id": n.directory(tenant, round)}, files.Limits{})
	if !assert.NoError(n.t, err) {
		return
	}
	defer func() { assert.NoError(n.t, view.Close()) }()
	d := view.Preopens()[1].Dir
	n.write(d, tenant, worker, round)
	n.look(d, tenant)
	other := map[string]string{greedy: modest, modest: greedy}[tenant]
	for _, path := range []string{"../" + other, "../" + other + "/" + other + "-0", "l"} {
		_ = d.Symlink("../"+other, "l")
		if _, err := d.Stat(path, true); err == nil {
			n.crossings.Add(1)
		}
	}
	for _, o := range view.Journal.HostCalls() {
		if o.Allowed && strings.Contains(o.Target, other) {
			n.crossings.Add(1)
		}
	}
}

// write writes a file of the tenant. The greedy tenant's files reach its quota. The modest tenant's stay far below its
// quota, so that a lack of room is an effect of the greedy one.
func (n *tenancy) write(d *files.Dir, tenant string, worker, round int) {
	name, text := fmt.Sprintf("%s-%d", tenant, worker), tenant
	if tenant == greedy {
		name, text = fmt.Sprintf("%s-%d-%d", tenant, worker, round%5), strings.Repeat(tenant, 1000)
	}
	err := write(d, name, text)
	if errors.Is(err, errno.NoSpace) {
		if tenant == greedy {
			n.full.Add(1)
			_ = d.Unlink(name)
		} else {
			n.crossings.Add(1)
		}
	}
}

// look reads all that a tenant can find.
func (n *tenancy) look(d *files.Dir, tenant string) {
	entries, err := d.ReadDir()
	assert.NoError(n.t, err)
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name, tenant) {
			n.crossings.Add(1)
		}
		// Another call of the tenant may have removed it, or be writing it.
		if text, err := read(d, entry.Name); err == nil && strings.Trim(text, tenant) != "" {
			n.crossings.Add(1)
		}
	}
}

func TestTenantsNeverMeet(t *testing.T) {
	n := newTenancy(t, func(tenant string, _ int) string { return tenant })
	n.hammer()
	assert.Zero(t, n.crossings.Load())
	assert.Positive(t, n.full.Load(), "the greedy tenant meets its quota, and the other does not")
	for _, tenant := range []string{greedy, modest} {
		bytes, _ := sizes(t, n.world.path(tenant))
		assert.LessOrEqual(t, bytes, int64(tenantQuota))
	}
	assert.Zero(t, files.Trackers(n.store))
}

// TestTenantsNeverMeetControl gives a tenant the other's directory now and then: what
// must never happen is then seen to happen.
func TestTenantsNeverMeetControl(t *testing.T) {
	n := newTenancy(t, func(tenant string, round int) string {
		if tenant == modest && round%20 == 10 {
			return greedy
		}
		return tenant
	})
	n.hammer()
	require.Positive(t, n.crossings.Load())
}
