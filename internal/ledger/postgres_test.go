//go:build postgres

package ledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// cluster is a PostgreSQL server of the tests' own, which a user without privileges runs. It listens on a socket in its
// folder alone.
type cluster struct {
	dir  string
	bin  string
	as   *syscall.SysProcAttr
	made atomic.Int64 // databases
}

var started = sync.OnceValues(startCluster)

func TestMain(m *testing.M) {
	stores["postgres"] = func(t *testing.T) string {
		c, err := started()
		require.NoError(t, err)
		return c.newDatabase(t)
	}
	code := m.Run()
	if c, err := started(); err == nil {
		if err := errors.Join(c.run("pg_ctl", "stop", "-D", c.data(), "-m", "fast", "-w"), os.RemoveAll(c.dir)); err != nil {
			fmt.Fprintln(os.Stderr, "the cluster cannot be stopped:", err)
			code = 1
		}
	}
	os.Exit(code)
}

func startCluster() (*cluster, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return nil, errors.New("no PostgreSQL in /usr/lib/postgresql; install Debian's package postgresql")
	}
	dir, err := os.MkdirTemp("", "caisson-postgres-")
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir, bin: filepath.Dir(found[len(found)-1])}
	if os.Geteuid() == 0 { // which PostgreSQL refuses
		owner, err := user.Lookup("postgres")
		if err != nil {
			return nil, err
		}
		uid, _ := strconv.Atoi(owner.Uid)
		gid, _ := strconv.Atoi(owner.Gid)
		c.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		if err := os.Chown(dir, uid, gid); err != nil {
			return nil, err
		}
	}
	return c, errors.Join(
		c.run("initdb", "-D", c.data(), "-U", "caisson", "-A", "trust", "-E", "UTF8", "--locale=C"),
		c.run("pg_ctl", "start", "-D", c.data(), "-w", "-l", filepath.Join(dir, "log"),
			"-o", "-c listen_addresses='' -c unix_socket_directories="+dir+" -c max_connections=200"),
	)
}

func (c *cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *cluster) run(name string, arguments ...string) error {
	command := exec.Command(filepath.Join(c.bin, name), arguments...)
	var output bytes.Buffer
	command.Dir, command.SysProcAttr, command.Stdout, command.Stderr = c.dir, c.as, &output, &output
	if name == "pg_ctl" { // whose server would keep a pipe open
		command.Stdout, command.Stderr = nil, nil
	}
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, output.String())
	}
	return nil
}

// newDatabase returns the URL of a new database.
func (c *cluster) newDatabase(t *testing.T) string {
	name := fmt.Sprintf("test%d", c.made.Add(1))
	require.NoError(t, c.run("createdb", "-h", c.dir, "-U", "caisson", name))
	return "postgres://caisson@/" + name + "?host=" + url.QueryEscape(c.dir)
}
