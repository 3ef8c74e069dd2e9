//go:build postgres

// Package testcluster runs a PostgreSQL server for tests, from Debian's package.
package testcluster

import (
	"bytes"
	"errors"
	"fmt"
	neturl "net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// Cluster is a PostgreSQL server of the tests' own, which a user without privileges runs. It listens on a socket in its
// folder alone.
type Cluster struct {
	// Disk has the data, if the cluster was started with StartSmall.
	Disk *Disk

	dir  string
	bin  string
	as   *syscall.SysProcAttr
	made atomic.Int64 // databases
}

// Start starts a server. Stop must be called.
func Start() (*Cluster, error) { return started(0) }

// StartSmall starts a server whose data is on a small disk. Stop must be called.
func StartSmall(megabytes int) (*Cluster, error) { return started(megabytes) }

func started(megabytes int) (*Cluster, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return nil, errors.New("no PostgreSQL in /usr/lib/postgresql; install Debian's package postgresql")
	}
	dir, err := os.MkdirTemp("", "caisson-postgres-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, bin: filepath.Dir(found[len(found)-1])}
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
	if megabytes > 0 {
		c.Disk = &Disk{as: c.as}
		if err := c.Disk.mount(megabytes); err != nil {
			return nil, err
		}
	}
	return c, errors.Join(
		c.run("initdb", "-D", c.data(), "-U", "caisson", "-A", "trust", "-E", "UTF8", "--wal-segsize=1"),
		c.StartAgain(),
	)
}

// StartAgain starts a server that has ended.
func (c *Cluster) StartAgain() error {
	return c.run("pg_ctl", "start", "-D", c.data(), "-w", "-l", filepath.Join(c.dir, "log"),
		"-o", "-c listen_addresses='' -c unix_socket_directories="+c.dir+" -c max_connections=200")
}

func (c *Cluster) data() string {
	if c.Disk != nil {
		return filepath.Join(c.Disk.Dir, "data")
	}
	return filepath.Join(c.dir, "data")
}

// Runs reports whether the server runs.
func (c *Cluster) Runs() bool { return c.run("pg_ctl", "status", "-D", c.data()) == nil }

func (c *Cluster) run(name string, arguments ...string) error {
	command := exec.Command("env", append([]string{"LC_ALL=C", filepath.Join(c.bin, name)}, arguments...)...)
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

// Stop stops the server, and removes its data.
func (c *Cluster) Stop() error {
	err := errors.Join(c.run("pg_ctl", "stop", "-D", c.data(), "-m", "fast", "-w"), os.RemoveAll(c.dir))
	if c.Disk != nil {
		err = errors.Join(err, c.Disk.Stop())
	}
	return err
}

// Restart stops the server at once, as if it had crashed, and starts it again after a time.
func (c *Cluster) Restart(after time.Duration) error {
	err := c.run("pg_ctl", "stop", "-D", c.data(), "-m", "immediate", "-w")
	time.Sleep(after)
	return errors.Join(err, c.StartAgain())
}

// NewLimited returns the URL of a new database of a user without privileges, who may have some connections to it at a
// time, and functions that change how many, and end those that there are.
func (c *Cluster) NewLimited(connections int) (
	url string, limit func(connections int) error, disconnect func() error, err error,
) {
	name := fmt.Sprintf("limited%d", c.made.Add(1))
	url = "postgres://" + name + "@/" + name + "?host=" + neturl.QueryEscape(c.dir)
	sql := func(text string) error {
		return c.run("psql", "-h", c.dir, "-U", "caisson", "-d", "postgres", "-c", text)
	}
	limit = func(connections int) error {
		return sql(fmt.Sprintf("alter role %s connection limit %d", name, connections))
	}
	disconnect = func() error {
		return sql("select pg_terminate_backend(pid) from pg_stat_activity where usename = '" + name + "'")
	}
	return url, limit, disconnect, errors.Join(sql("create role "+name+" login"), limit(connections),
		c.run("createdb", "-h", c.dir, "-U", "caisson", "-O", name, name))
}

// NewDatabase returns the URL of a new database.
func (c *Cluster) NewDatabase() (url string, err error) {
	name := fmt.Sprintf("test%d", c.made.Add(1))
	return "postgres://caisson@/" + name + "?host=" + neturl.QueryEscape(c.dir),
		c.run("createdb", "-h", c.dir, "-U", "caisson", name)
}
