package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
	"github.com/caisson-run/caisson/runtime"
)

// options are the values of the flags that commands share.
type options struct {
	tools    []string
	only     string // if not empty, the only source, whatever the flags and the policy name
	config   string
	profile  string
	mounts   mountFlag
	networks networkFlag
	secrets  secretFlag
	context  contextFlag
	timeout  durationFlag
	memory   bytesFlag
	fuel     fuelFlag
	parallel int
	calls    callFlag
	asks     askFlag
	approved approveFlag
	cacheDir cacheFlag
	trusted  trustFlag
	state    stateFlag

	noRepair, tolerantJSON, noReuse bool
	maxOutput                       sizeFlag
	batchTimeout                    durationFlag

	json, quiet, verbose bool
}

func (o *options) outputFlags(command *cobra.Command, json string) {
	command.Flags().BoolVar(&o.json, "json", false, json)
	command.Flags().BoolVar(&o.quiet, "quiet", false, "print only errors: no hints, no progress, no tool logs")
}

func (o *options) sourceFlags(command *cobra.Command) {
	command.Flags().StringArrayVar(&o.tools, "tools", nil,
		"load tools from a folder or manifest `SOURCE`; repeatable, the first tool with a name wins (default: the policy's sources, or ./"+defaultTools+" if it exists)")
}

func (o *options) grantFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.Var(&o.mounts, "mount",
		"grant a directory to tools that ask for its guest path: `GUEST=HOSTDIR[:ro|:rw]`, read-only by default; HOSTDIR may contain context values such as {project_id}; repeatable")
	flags.Var(&o.context, "context",
		"set the context value `KEY=VALUE` and grant it to tools that ask for it; repeatable")
	flags.Var(&o.timeout, "timeout", "time limit per call, a `DURATION` such as 30s; a tool may ask for less (default: the profile's, 10s in standard)")
	flags.Var(&o.memory, "memory", "memory limit per call, a `SIZE` such as 64MiB; a tool may ask for less (default: the profile's, 128MiB in standard)")
	flags.Var(&o.fuel, "fuel", "instruction limit per call, `N`; a tool may ask for less (default: no limit but time)")
}

func (o *options) runFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.Var(&o.cacheDir, "cache-dir", "cache compiled code in `DIR`; \"\" disables the cache (default: in the user's cache folder)")
	flags.Var(&o.trusted, "trust",
		"compile the module with digest `SHA256` without limits on compile time and memory; its calls are sandboxed as usual; repeatable")
	o.stateFlags(command)
	flags.BoolVar(&o.verbose, "verbose", false, "log what Caisson does to standard error")
}

// limits returns the limits for every call that the flags set. They replace the profile's.
func (o *options) limits() runtime.Limits {
	return runtime.Limits{Timeout: time.Duration(o.timeout), Memory: manifests.Bytes(o.memory), Fuel: int64(o.fuel)}
}

// policy returns the flags as a policy: grants to every tool that asks for them, and which calls
// require approval.
func (o *options) policy() *manifests.Policy {
	given := manifests.Grant{Tools: []string{"*"}, Files: o.mounts, Network: o.networks, Secrets: o.secrets.grants, Calls: o.calls}
	for _, value := range o.context {
		// Guests see origins in receipts, so they contain no value and no host path.
		origin := manifests.Binding{Origin: "--context " + value.key}
		given.Context = append(given.Context, manifests.ContextGrant{Binding: origin, Name: value.key})
	}
	said := &manifests.Policy{Ask: o.asks, Approve: o.approved}
	if len(given.Files)+len(given.Network)+len(given.Secrets)+len(given.Context)+len(given.Calls) > 0 {
		said.Grants = []manifests.Grant{given}
	}
	return said
}

// mountFlag collects --mount flags.
type mountFlag []manifests.FileGrant

func (m *mountFlag) String() string { return "" }
func (m *mountFlag) Type() string   { return "mount" }

// Set adds one grant: GUEST=HOSTDIR[:ro|:rw].
func (m *mountFlag) Set(text string) error {
	grant, err := parseMount(text)
	if err != nil {
		return err
	}
	for _, other := range *m {
		if other.Path == grant.Path {
			return fmt.Errorf("%s is mounted twice", grant.Path)
		}
	}
	*m = append(*m, grant)
	return nil
}

func parseMount(text string) (manifests.FileGrant, error) {
	guest, host, ok := strings.Cut(text, "=")
	if !ok || guest == "" || host == "" {
		return manifests.FileGrant{}, errors.New("want GUEST=HOSTDIR, such as /project=./workspace:rw")
	}
	if !strings.HasPrefix(guest, "/") {
		return manifests.FileGrant{}, fmt.Errorf("the guest path %q must be absolute, such as /project", guest)
	}
	grant := manifests.FileGrant{Path: guest, Access: manifests.AccessRead}
	grant.Origin = "--mount " + guest
	if rest, ok := strings.CutSuffix(host, ":rw"); ok {
		host, grant.Access = rest, manifests.AccessReadWrite
	} else if rest, ok := strings.CutSuffix(host, ":ro"); ok {
		host = rest
	} else if i := strings.LastIndexByte(host, ':'); i >= 0 && !isDrive(host[:i]) && !strings.ContainsAny(host[i:], `/\`) {
		// If the name of a directory has a colon, the access must follow it.
		return manifests.FileGrant{}, fmt.Errorf("the access %q is neither ro nor rw", host[i+1:])
	}
	template, err := permission.ParseHostTemplate(host)
	if err != nil {
		return manifests.FileGrant{}, err
	}
	if len(template.Keys()) == 0 {
		if info, err := os.Stat(host); err != nil {
			return manifests.FileGrant{}, err
		} else if !info.IsDir() {
			return manifests.FileGrant{}, fmt.Errorf("%s is not a directory", host)
		}
	}
	grant.Host = host
	return grant, nil
}

// isDrive reports whether text is the letter of a Windows drive.
func isDrive(text string) bool {
	return len(text) == 1 && ('a' <= text[0]|0x20 && text[0]|0x20 <= 'z')
}

// contextFlag collects --context flags in order.
type contextFlag []contextValue

type contextValue struct{ key, value string }

func (c *contextFlag) String() string { return "" }
func (c *contextFlag) Type() string   { return "context" }

// Set adds one value. Keys may not differ only in case, because many JSON decoders ignore case.
func (c *contextFlag) Set(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return errors.New("want KEY=VALUE, such as project_id=demo")
	}
	for _, other := range *c {
		if strings.EqualFold(other.key, key) {
			return fmt.Errorf("%s was set before, as %s", key, other.key)
		}
	}
	*c = append(*c, contextValue{key, value})
	return nil
}

// durationFlag is a positive duration, or 0 if not given.
type durationFlag time.Duration

func (d *durationFlag) String() string { return "" }
func (d *durationFlag) Type() string   { return "duration" }

// Set parses a duration.
func (d *durationFlag) Set(text string) error {
	duration, err := manifests.ParseDuration(text)
	*d = durationFlag(duration)
	return err
}

// bytesFlag is a size of at least one byte, or 0 if not given.
type bytesFlag manifests.Bytes

func (b *bytesFlag) String() string { return "" }
func (b *bytesFlag) Type() string   { return "size" }

// Set parses a size.
func (b *bytesFlag) Set(text string) error {
	size, err := manifests.ParseBytes(text)
	if err == nil && size == 0 {
		err = errors.New("want more than 0 bytes")
	}
	*b = bytesFlag(size)
	return err
}

// fuelFlag is a positive number of instructions, or 0 if not given.
type fuelFlag int64

func (f *fuelFlag) String() string { return "" }
func (f *fuelFlag) Type() string   { return "n" }

// Set parses a number.
func (f *fuelFlag) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		return errors.New("want a whole number above 0")
	}
	*f = fuelFlag(n)
	return nil
}

// cacheFlag is a folder. "" means none, and no flag means the default.
type cacheFlag struct {
	dir   string
	given bool
}

func (c *cacheFlag) String() string { return "" }
func (c *cacheFlag) Type() string   { return "dir" }

// Set records the folder.
func (c *cacheFlag) Set(text string) error {
	c.dir, c.given = text, true
	return nil
}

// path returns the folder for compiled code, or "" for none.
func (c *cacheFlag) path() (string, error) {
	if c.given {
		return c.dir, nil
	}
	dir, err := runtime.DefaultCacheDir()
	if err != nil {
		return "", failed(exitUsage, err.Error(), `name a folder with --cache-dir DIR, or disable the cache with --cache-dir ""`)
	}
	return dir, nil
}

// trustFlag collects the digests of --trust flags.
type trustFlag []string

func (f *trustFlag) String() string { return "" }
func (f *trustFlag) Type() string   { return "sha256" }

// Set adds one digest.
func (f *trustFlag) Set(text string) error {
	if digest, err := hex.DecodeString(text); err != nil || len(digest) != sha256.Size {
		return errors.New("want the SHA-256 of a module, 64 hex digits; caisson inspect prints it")
	}
	*f = append(*f, text)
	return nil
}

// networkFlag collects --allow-net flags.
type networkFlag []manifests.NetworkGrant

func (f *networkFlag) String() string { return "" }
func (f *networkFlag) Type() string   { return "host" }

// Set adds one grant: [SCHEME://]HOST[:PORT].
func (f *networkFlag) Set(text string) error {
	grant, err := parseNetwork(text)
	*f = append(*f, grant)
	return err
}

// secretFlag collects --secret flags. Errors are reported by check and not by Set, because the
// message for an error of Set repeats the whole flag, which may contain the secret itself.
type secretFlag struct {
	grants []manifests.SecretGrant
	wrong  []message
}

func (f *secretFlag) String() string { return "" }
func (f *secretFlag) Type() string   { return "secret" }

// Set adds one grant: NAME=env:VAR@[SCHEME://]HOST[:PORT].
func (f *secretFlag) Set(text string) error {
	grant, err := parseSecret(text)
	if err == nil && slices.ContainsFunc(f.grants, func(other manifests.SecretGrant) bool {
		return other.Name == grant.Name && other.Host == grant.Host && slices.Equal(other.Ports, grant.Ports) && slices.Equal(other.Schemes, grant.Schemes)
	}) {
		err = fmt.Errorf("%s is bound to %s twice", grant.Name, grant.Host)
	}
	if err != nil {
		f.wrong = append(f.wrong, message{"--secret: " + err.Error(), nil})
		return nil
	}
	f.grants = append(f.grants, grant)
	return nil
}

// check returns the errors of the flags.
func (f *secretFlag) check() error {
	if len(f.wrong) == 0 {
		return nil
	}
	return &failure{exitUsage, f.wrong}
}
