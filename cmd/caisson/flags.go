package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/internal/agefile"
	"github.com/caisson-run/caisson/internal/check"
	"github.com/caisson-run/caisson/internal/interpreter"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
)

type options struct {
	environment
	command      *cobra.Command // with these flags; nil if it loads no tools
	tools        []string
	only         string // if not empty, the only source, whatever the flags and the policy name
	config       string
	profile      string
	mounts       []manifests.FileGrant
	networks     []manifests.NetworkGrant
	secrets      []manifests.SecretGrant
	context      []contextValue
	limits       runtime.Limits // replace the profile's
	parallel     int
	calls        []manifests.NameGrant
	asks         []manifests.PolicyAsk
	approved     []manifests.PolicyApproval
	cacheDir     *string // for compiled code; "" for none, nil for the default
	agent        string  // whose tools are the only ones; empty for all
	tenant       string  // the owner of the agents and of the calls; may be empty
	stateDir     *string // for records and paused batches; "" for none, nil for the default
	ledgerURL    string  // of the database with records, agents and tokens; "" for the state folder
	imports      bool    // whether agents and tokens of an earlier version are imported into the database
	keepFor      time.Duration
	keepRecords  int
	relaxed      bool // records need not be durable before calls are answered
	checkpoints  checkpointKey
	stateKeys    *agefile.Keys // of what waits for an answer; nil to encrypt none
	recordInputs bool
	trusted      []string
	interpreters interpreter.Folder // empty for the default

	noRepair, tolerantJSON, noReuse bool
	maxOutput                       sizeFlag
	batchTimeout                    time.Duration

	json, quiet, verbose bool
}

// noDialect is the value of --dialect for plain calls that are not in a provider's format.
const noDialect = "none"

func (o *options) outputFlags(command *cobra.Command, json string) {
	command.Flags().BoolVar(&o.json, "json", false, json)
	command.Flags().BoolVar(&o.quiet, "quiet", false, "print results and errors only: no hints, no progress, no tool logs")
}

func (o *options) toolFlags(command *cobra.Command) {
	o.sourceFlags(command)
	o.policyFlags(command)
	o.grantFlags(command)
}

func (o *options) sourceFlags(command *cobra.Command) {
	o.command = command
	command.Flags().StringArrayVar(&o.tools, "tools", nil,
		"load tools from a folder or manifest `SOURCE`; repeatable; if two tools have the same name, the first is used "+
			"(default: the policy's sources, or ./"+defaultTools+" if it exists)")
}

func (o *options) grantFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.Func("mount",
		"grant a directory to tools that request its guest path: `GUEST=HOSTDIR[:ro|:rw]`, read-only by default; HOSTDIR "+
			"may contain context values such as {project_id}; repeatable", o.addMount)
	flags.Func("context",
		"set the context value `KEY=VALUE`, such as project_id=demo, and pass it to tools that request it; host paths may "+
			"contain it, as in ./work/{project_id}; repeatable", o.addContext)
}

func (o *options) limitFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.Func("timeout",
		"time limit per call, a `DURATION` such as 30s; a tool may request less (default: the profile's, 10s in standard)",
		parsedInto(&o.limits.Timeout, parseTimeout))
	flags.Func("memory",
		"memory limit per call, a `SIZE` such as 64MiB; a tool may request less (default: the profile's, 128MiB in standard)",
		parsedInto(&o.limits.Memory, parseMemory))
	flags.Func("fuel", "run at most `N` instructions per call; a tool may request less (default: limited only by time)",
		parsedInto(&o.limits.Fuel, parseFuel))
}

func (o *options) compileFlags(command *cobra.Command) {
	flags := command.Flags()
	o.cacheFlag(command,
		"cache compiled code and the index of manifests in `DIR`; \"\" disables the cache (default: in the user's cache "+
			"folder)")
	flags.Func("trust",
		"compile the module with digest `SHA256` without limits on compile time and memory; its calls are sandboxed as "+
			"usual; repeatable",
		addedTo(&o.trusted, parseDigest))
	o.interpreterFlag(command)
	o.logFlag(command)
}

func (o *options) cacheFlag(command *cobra.Command, usage string) {
	command.Flags().Func("cache-dir", usage, pointedTo(&o.cacheDir))
}

func (o *options) logFlag(command *cobra.Command) {
	command.Flags().BoolVar(&o.verbose, "verbose", false, "log what Caisson does to standard error")
}

func (o *options) interpreterFlag(command *cobra.Command) {
	command.Flags().StringVar((*string)(&o.interpreters), "interpreter-dir", "",
		"interpreters of script tools are in `DIR` (default: in the user's cache folder)")
}

// interpreterFolder returns the folder that the flag names, or the user's.
func (o *options) interpreterFolder() (interpreter.Folder, error) {
	if o.interpreters != "" {
		return o.interpreters, nil
	}
	folder, err := interpreter.DefaultFolder()
	if err != nil {
		return "", failed(exitUsage, err.Error(), "name one with --interpreter-dir DIR")
	}
	return folder, nil
}

// policy returns the flags as a policy: grants to every tool that requests them, and which calls require approval.
func (o *options) policy() *manifests.Policy {
	given := manifests.Grant{Tools: []string{"*"}}
	given.Files, given.Network, given.Secrets, given.Calls = o.mounts, o.networks, o.secrets, o.calls
	for _, value := range o.context {
		// Guests see origins in receipts, so they contain no value and no host path.
		origin := manifests.Binding{Origin: "--context " + value.key}
		given.Context = append(given.Context, manifests.NameGrant{Binding: origin, Name: value.key})
	}
	said := &manifests.Policy{Ask: o.asks, Approve: o.approved}
	if o.recordInputs {
		said.RecordInputs = []manifests.PolicyAsk{{Origin: "--record-inputs", Tool: "*"}}
	}
	if len(given.Files)+len(given.Network)+len(given.Secrets)+len(given.Context)+len(given.Calls) > 0 {
		said.Grants = []manifests.Grant{given}
	}
	return said
}

// parsedInto returns the setter of a flag that stores its parsed value.
func parsedInto[T any](value *T, parse func(string) (T, error)) func(string) error {
	return func(text string) (err error) {
		*value, err = parse(text)
		return err
	}
}

// addedTo returns the setter of a repeatable flag that adds each parsed value to a list.
func addedTo[T any](list *[]T, parse func(string) (T, error)) func(string) error {
	return func(text string) error {
		value, err := parse(text)
		if err == nil {
			*list = append(*list, value)
		}
		return err
	}
}

// pointedTo returns the setter of a flag whose empty value differs from its absence, which is nil.
func pointedTo(value **string) func(string) error {
	return func(text string) error {
		*value = &text
		return nil
	}
}

// addMount adds a grant: GUEST=HOSTDIR[:ro|:rw]. Like the other flags here, it may be repeated with the same value:
// flags are parsed twice when a shell completes a command.
func (o *options) addMount(text string) error {
	grant, err := parseMount(text)
	if err != nil ||
		slices.ContainsFunc(o.mounts, func(other manifests.FileGrant) bool { return reflect.DeepEqual(other, grant) }) {
		return err
	}
	if slices.ContainsFunc(o.mounts, func(other manifests.FileGrant) bool { return other.Path == grant.Path }) {
		return fmt.Errorf("%s is mounted twice", grant.Path)
	}
	o.mounts = append(o.mounts, grant)
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
	grant := manifests.FileGrant{Path: permission.NewGuestPath(guest), Access: manifests.AccessRead}
	grant.Origin = "--mount " + guest
	if rest, ok := strings.CutSuffix(host, ":rw"); ok {
		host, grant.Access = rest, manifests.AccessReadWrite
	} else if rest, ok := strings.CutSuffix(host, ":ro"); ok {
		host = rest
	} else if i := strings.LastIndexByte(host, ':'); i >= 0 && !(i == 1 && unicode.IsLetter(rune(host[0]))) &&
		!strings.ContainsAny(host[i:], `/\`) {
		// If the name of a directory has a colon, other than that of a Windows drive, the access must follow it.
		return manifests.FileGrant{}, fmt.Errorf("the access %q is neither ro nor rw", host[i+1:])
	}
	var err error
	if grant.Host, err = permission.ParseHostTemplate(host); err != nil {
		return manifests.FileGrant{}, err
	}
	if len(grant.Host.Keys()) == 0 {
		if info, err := os.Stat(host); err != nil {
			return manifests.FileGrant{}, fmt.Errorf("the directory %s: %s", host, check.Reason(err))
		} else if !info.IsDir() {
			return manifests.FileGrant{}, fmt.Errorf("%s is not a directory", host)
		}
	}
	return grant, nil
}

type contextValue struct{ key, value string }

// addContext adds a value: KEY=VALUE. Keys may not differ only in case, because many JSON decoders ignore case.
func (o *options) addContext(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return errors.New("want KEY=VALUE, such as project_id=demo")
	}
	for _, other := range o.context {
		if other == (contextValue{key, value}) {
			return nil
		}
		if strings.EqualFold(other.key, key) {
			return fmt.Errorf("%s was set before, as %s", key, other.key)
		}
	}
	o.context = append(o.context, contextValue{key, value})
	return nil
}

// addSecret adds a grant: NAME=SOURCE@ORIGIN. Its errors are [secretError]s.
func (o *options) addSecret(text string) error {
	grant, err := parseSecret(text)
	if err != nil {
		return err
	}
	for _, other := range o.secrets {
		if reflect.DeepEqual(other, grant) {
			return nil
		}
		if other.Name == grant.Name && other.Host == grant.Host && slices.Equal(other.Ports, grant.Ports) &&
			slices.Equal(other.Schemes, grant.Schemes) {
			return secretError(grant.Name + " is bound to " + grant.Host + " twice")
		}
	}
	o.secrets = append(o.secrets, grant)
	return nil
}

func parseSize(text string) (manifests.Bytes, error) {
	size, err := manifests.ParseBytes(text)
	switch {
	case err != nil:
		return 0, errors.New("want a whole number with a unit, such as 64MiB, 256KiB or 512B")
	case size == 0:
		return 0, errors.New("want more than 0 bytes")
	}
	return size, nil
}

func parseMemory(text string) (manifests.Bytes, error) {
	size, err := parseSize(text)
	switch {
	case err != nil:
		return 0, err
	case size < manifests.MinMemory && isWhole(text):
		return 0, fmt.Errorf("%s without a unit are bytes, and a tool needs at least %s; write %sMiB", text,
			manifests.MinMemory, text)
	case size < manifests.MinMemory:
		return 0, fmt.Errorf("want at least %s, since WebAssembly's memory grows by that; write a size such as 64MiB",
			manifests.MinMemory)
	case size > manifests.MaxMemory:
		return 0, fmt.Errorf("want at most %s", manifests.MaxMemory)
	}
	return size, nil
}

func parseDuration(text string) (time.Duration, error) {
	duration, err := manifests.ParseDuration(text)
	switch {
	case err != nil && isWhole(text):
		return 0, fmt.Errorf("the unit is missing; write %ss, %sm or %sh", text, text, text)
	case err != nil:
		return 0, errors.New("want more than 0, with a unit, such as 10s, 1m30s or 1.5s")
	}
	return duration, nil
}

// isWhole reports whether a text is a whole number above 0, without a unit.
func isWhole(text string) bool {
	n, err := strconv.ParseUint(text, 10, 63)
	return err == nil && n > 0
}

func parseTimeout(text string) (time.Duration, error) {
	timeout, err := parseDuration(text)
	if err == nil && timeout > manifests.MaxTimeout {
		err = fmt.Errorf("want at most %s", manifests.MaxTimeout)
	}
	return timeout, err
}

func parseFuel(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		return 0, errors.New("want a whole number above 0")
	}
	return n, nil
}

func parseDigest(text string) (string, error) {
	if digest, err := hex.DecodeString(text); err != nil || len(digest) != sha256.Size {
		return "", errors.New("want the SHA-256 of a module, 64 hex digits; caisson inspect prints it")
	}
	return text, nil
}

// cacheFolder returns the folder for compiled code and the index of manifests, or "" for none.
func (o *options) cacheFolder() (string, error) {
	if o.cacheDir != nil {
		return *o.cacheDir, nil
	}
	return runtime.DefaultCacheDir()
}

// compiledIn is like cacheFolder, and prints a hint if it finds no folder.
func (o *options) compiledIn() string {
	dir, err := o.cacheFolder()
	if err != nil { // as in a container
		o.hint(err.Error())
	}
	return dir
}

// uncached says why modules are compiled although calls before may have compiled them.
func (o *options) uncached(reason error) {
	reason = causeOf(reason)
	if o.cacheDir == nil {
		o.hint("modules are compiled each time, unless --cache-dir DIR names a folder: " + reason.Error())
		return
	}
	o.hint("modules are compiled each time: " + reason.Error() +
		"; correct that, or fill the folder again with caisson compile")
}
