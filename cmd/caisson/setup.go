package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// defaultTools is the source if neither a flag nor the policy names one.
const defaultTools = "wasm-tools"

// host is the loaded tools and the executor of their calls. Close it.
type host struct {
	*caisson.Host
	options      *options
	operator     *operator
	sources      []string
	registry     *registry.Registry
	logger       *slog.Logger // nil without --verbose
	runaways     *runaways
	session      *executor.Session // nil before [host.start]
	witness      *witness          // nil if no calls are run
	stateProblem error             // why there is no folder for records
}

// opening says why tools are opened.
type opening struct {
	starts   bool              // whether programs are compiled and started
	fills    bool              // whether compiled code is only stored for later, so that tools are granted nothing
	runs     bool              // whether calls are run as well
	serves   bool              // whether calls of others are run, until they have gone
	shared   bool              // whether these are many, who must be protected from each other
	recorder executor.Recorder // of the calls that are served; may be nil
	called   []string          // the tools of these calls, as far as they are known
	claims   executor.Claimer  // ensures that a batch is resumed only once; may be nil
}

// open loads the tools that the flags and the policy name, with their grants.
func (o *options) open(ctx context.Context, opening opening) (_ *host, err error) {
	if o.quiet && o.verbose {
		return nil, failed(exitUsage, "--quiet and --verbose cannot be used together")
	}
	indexDir, _ := o.cacheFolder()
	cacheDir := "" // for none, or for the default unless code must be stored
	switch {
	case o.cacheDir != nil && (opening.starts || opening.runs || opening.serves):
		cacheDir = *o.cacheDir
	case opening.fills:
		cacheDir = o.compiledIn()
	}
	operator, err := o.operator()
	if err != nil {
		return nil, err
	}
	if p := operator.policy; opening.fills {
		operator.policy = &manifests.Policy{File: p.File, Tools: p.Tools, Profile: p.Profile, Profiles: p.Profiles}
	}
	sources, err := operator.sources()
	if err != nil {
		return nil, err
	}
	h := &host{options: o, operator: operator, sources: sources, runaways: newRunaways(o.environment, o.quiet)}
	if o.verbose {
		h.logger = slog.New(slog.NewTextHandler(o.stderr, nil))
	}
	options := h.openOptions(cacheDir)
	options.NoCache = cacheDir == "" && (o.cacheDir != nil || !opening.starts && !opening.runs && !opening.serves)
	options.Runtime.FillCache, options.IndexDir = opening.fills, indexDir
	switch {
	case opening.runs:
		err = h.runOptions(opening.claims, &options)
	case opening.serves:
		err = h.serveOptions(opening, &options)
	}
	if err != nil {
		return nil, err
	}
	if err := h.openTools(ctx, options, opening.called); err != nil {
		return nil, notOpened(ctx, err, cacheDir, opening)
	}
	if err := h.hostsOfTools(); err != nil {
		_ = h.Close(ctx) // nothing has run
		return nil, err
	}
	h.noteProblems()
	h.logUnapplied(ctx)
	return h, nil
}

// openTools opens the tools. If the index of manifests is wrong about one that is called, all manifests
// are parsed.
func (h *host) openTools(ctx context.Context, options caisson.Options, called []string) (err error) {
	if h.Host, err = caisson.Open(ctx, options); err != nil {
		return err
	}
	if h.registry = h.Registry(); h.confirm(called) == nil {
		return nil
	}
	if err := h.Close(ctx); err != nil { // nothing has run
		return err
	}
	options.IndexDir = ""
	if h.Host, err = caisson.Open(ctx, options); err != nil {
		return err
	}
	h.registry = h.Registry()
	return nil
}

// confirm parses the manifests of these tools, and of those that they may call.
func (h *host) confirm(names []string) error {
	for _, entry := range h.withCallees(names) {
		if err := entry.Manifest.Confirm(); err != nil {
			return err
		}
	}
	return nil
}

// withCallees returns the tools with these names, and those that they request to call, also indirectly.
func (h *host) withCallees(names []string) []registry.Entry {
	var all []registry.Entry
	found := map[string]bool{}
	for next := slices.Clone(names); len(next) > 0; next = next[1:] {
		entry, known := h.registry.Get(next[0])
		if !known || found[entry.Name] {
			continue
		}
		found[entry.Name] = true
		all = append(all, entry)
		next = append(next, entry.Manifest.Permissions.Tools...)
	}
	return all
}

// noteProblems says which tools are not loaded, and why.
func (h *host) noteProblems() {
	for _, p := range h.problems() {
		h.options.hint(placeOf(p) + p.Message + "; " + p.Fix)
	}
}

// problems returns what kept tools from being loaded: of each broken manifest the first problem, with
// what follows from it.
func (h *host) problems() []manifests.Problem {
	var all []manifests.Problem
	for _, problem := range h.Problems() {
		source, _ := problem.(*registry.Error)
		all = append(all, notLoaded(source, leavesOf(problem))...)
	}
	return all
}

// notLoaded returns a problem for each of the errors of a source that was not loaded as a whole, or of
// a broken manifest if source is nil.
func notLoaded(source *registry.Error, leaves []error) []manifests.Problem {
	var all []manifests.Problem
	from := ""
	if source != nil {
		from = source.Name
	}
	for _, leaf := range leaves {
		broken, invalid := errors.AsType[*manifests.Error](leaf)
		inFile, scanned := errors.AsType[*registry.Error](leaf)
		duplicate, taken := errors.AsType[*registry.DuplicateError](leaf)
		switch {
		case invalid && source == nil:
			all = append(all, firstOf(broken, fmt.Sprintf("so the tool %s is not loaded, and no other gets its name", broken.Names[0])))
		case invalid && len(broken.Names) == 0:
			all = append(all, firstOf(broken, fmt.Sprintf("so the tool's name cannot be read, and nothing from %s is loaded", from)))
		case invalid:
			all = append(all, firstOf(broken, ""))
		case taken:
			all = append(all, lookAlikeProblem(duplicate))
		case scanned:
			all = append(all, problemIn(inFile.Name, unreadable, reasonOf(leaf), "make it a regular file of at most 1 MiB that can be read, or remove it"))
		case errors.Is(leaf, manifests.ErrFile):
			all = append(all, problemIn(from, unreadable, leaf.Error(), "make it a regular file of at most 1 MiB that can be read"))
		default:
			all = append(all, problemIn(from, unreadable, textOf(leaf), "correct the manifests there"))
		}
	}
	return all
}

// lookAlikeProblem returns the problem of a tool that is not loaded because its name looks like another's, at the
// place of the name.
func lookAlikeProblem(d *registry.DuplicateError) manifests.Problem {
	read, _, err := manifestsIn(d.Dropped.File)
	at := slices.IndexFunc(read, func(m *manifests.Manifest) bool { return m.Name == d.Name })
	if err != nil || at < 0 { // the file has changed since
		return problemIn(d.Dropped.File, duplicateName, d.Error(), fixDuplicate)
	}
	return read[at].Problem("name", duplicateName, d.Error(), fixDuplicate)
}

// firstOf returns the first problem of a broken manifest, and what follows from it.
func firstOf(broken *manifests.Error, follows string) manifests.Problem {
	p := broken.Problems[0]
	if follows != "" {
		p.Message += ", " + follows
	}
	p.Fix = toRun("caisson validate " + quoted(p.File))
	return p
}

// openOptions returns the options for opening the tools.
func (h *host) openOptions(cacheDir string) caisson.Options {
	o, policy := h.options, *h.operator.policy
	policy.Tools = nil // they are among the sources, unless only one tool is inspected
	return caisson.Options{
		Policies: []*manifests.Policy{&policy, h.operator.flags}, Tools: h.sources, Profile: o.profile,
		Logger: h.logger,
		Runtime: runtime.Options{
			CacheDir: cacheDir, OnUncached: o.uncached, Interpreters: o.interpreters, Compiler: o.compiler, TrustedModules: o.trusted, Limits: o.limits, LookupEnv: os.LookupEnv,
			OnRunaway: h.runaways.add, LastResort: h.runaways.lastResort(),
		},
	}
}

// runOptions adds the options for running calls and observing them.
func (h *host) runOptions(claims executor.Claimer, options *caisson.Options) (err error) {
	h.witness = &witness{parents: map[string]string{}, profiles: map[string]string{}, causes: map[string]error{}, progress: h.options.newProgress(), logger: h.logger}
	if options.Executor, err = h.options.executorOptions(h.readOn); err != nil {
		return err
	}
	options.Executor.Recorder, options.Executor.Pause.Claim = h.witness, claims
	options.StateDir, h.stateProblem = h.options.stateFolder()
	options.Resolver = h.witness.over
	return nil
}

// serveOptions adds the options for running calls of others. Nothing is kept of a call once it has ended but its
// record.
func (h *host) serveOptions(opening opening, options *caisson.Options) (err error) {
	options.Executor, err = h.options.executorOptions(nil)
	if opening.shared {
		options.Executor.Limits, options.Executor.Rates, options.Executor.Breaker = executor.Limits{}, executor.Rates{}, executor.Breaker{}
	}
	options.Executor.Recorder = opening.recorder
	options.StateDir, h.stateProblem = h.options.stateFolder()
	options.Logger = h.serverLog(slog.LevelError)
	if h.stateProblem != nil {
		options.Logger.Error("records of calls are not kept", "err", h.stateProblem)
	}
	return err
}

// serverLog returns the log of a command that serves: of everything with --verbose, and otherwise from a level on.
func (h *host) serverLog(level slog.Level) *slog.Logger {
	if h.logger != nil {
		return h.logger
	}
	return slog.New(slog.NewTextHandler(h.options.stderr, &slog.HandlerOptions{Level: level}))
}

// hostsOfTools rejects an --allow-net with the name of a tool. It takes a host, but its name suggests
// otherwise beside --allow-call. A host of that name can be given with its scheme.
func (h *host) hostsOfTools() error {
	for _, network := range h.options.networks {
		name := network.Host
		if _, found := h.registry.Get(name); found && network.Origin == "--allow-net "+name {
			return failed(exitUsage, fmt.Sprintf("--allow-net %s: %s is a tool, not a host", name, name),
				"name the host that its requests go to, such as api.example.com; tools that request it may reach it",
				fmt.Sprintf("if there is a host of this name, write --allow-net https://%s", name))
		}
	}
	return nil
}

// notOpened returns the failure for tools that could not be opened.
func notOpened(ctx context.Context, err error, cacheDir string, opening opening) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	known, ok := errors.AsType[*caisson.Error](err)
	if !ok {
		return err
	}
	switch err := known.Err; {
	case known.Kind != caisson.ErrRuntime:
		return &failure{exitUsage, messagesOf(err)}
	case opening.fills:
		return failed(exitUsage, "nothing can be stored: "+causeOf(err).Error(), "name another folder with --cache-dir DIR")
	case cacheDir != "":
		return failed(exitUsage, causeOf(err).Error(), `name another folder with --cache-dir DIR, or disable the cache with --cache-dir ""`)
	default:
		return err
	}
}

// causeOf returns the cause of an error of the runtime, since the operation says nothing to users, and other errors as
// they are.
func causeOf(err error) error {
	if failure, ok := err.(*runtime.Error); ok {
		return failure.Err
	}
	return err
}

// sources returns the folders and manifests to load: those of the flags, then those of the policy.
// It fails if one does not exist.
func (op *operator) sources() ([]string, error) {
	o := op.options
	if o.only != "" {
		return []string{o.only}, nil
	}
	if len(o.tools)+len(op.policy.Tools) == 0 {
		if info, err := os.Stat(defaultTools); err != nil || !info.IsDir() {
			return nil, failed(exitUsage, "no tools are given, and there is no folder ./"+defaultTools, append(op.unusedFile(), "name a folder with --tools DIR"+exampleOf(manifestsHere()))...)
		}
		return []string{defaultTools}, nil
	}
	var missing []message
	find := func(where string, sources []string) {
		for _, source := range sources {
			if isMissing(source) {
				missing = append(missing, message{fmt.Sprintf("%s: there is no file or folder %q", where, source), []string{"name a folder that holds tools, or a manifest"}})
			}
		}
	}
	find("--tools", o.tools)
	find(op.policy.File+": tools", op.policy.Tools)
	if len(missing) > 0 {
		return nil, &failure{exitUsage, missing}
	}
	return distinct(slices.Concat(o.tools, op.policy.Tools)), nil
}

func isMissing(source string) bool {
	_, err := os.Stat(source)
	return errors.Is(err, fs.ErrNotExist)
}

// close closes the host, and prints a hint if a record was not kept. It waits for calls even if ctx
// is done, except for one that cannot be stopped: the process is about to end then.
func (h *host) close(ctx context.Context) error {
	if h.session != nil {
		if problem := cmp.Or(h.stateProblem, h.CloseRecords()); problem != nil {
			h.options.hint("a call was not kept for \"caisson explain\": " + problem.Error() + `; choose another folder with --state-dir DIR, or none with --state-dir ""`)
		}
	}
	if h.runaways.any() {
		return nil
	}
	return h.Close(context.WithoutCancel(ctx))
}

// policyName is the usual name of a policy file.
const policyName = "caisson.yaml"

// configFlags adds the flags that name a policy and a profile.
func (o *options) configFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&o.config, "config", "",
		"load tools, grants and profiles from the policy `FILE`, such as "+policyName+"; no policy is loaded by default")
	flags.StringVar(&o.profile, "profile", "",
		"apply the limits of `PROFILE` to all tools: strict, standard, lenient, or a profile that the policy defines (default: the policy's, or standard)")
}

func (o *options) policyFlags(command *cobra.Command) {
	o.configFlags(command)
	flags := command.Flags()
	flags.Func("allow-net",
		"grant network access to `[SCHEME://]HOST[:PORT]` to tools that request it; https and http unless a scheme is given; repeatable",
		addedTo(&o.networks, parseNetwork))
	flags.Func("allow-call",
		"let other tools call the tool `NAME`, if their manifests request it; NAME runs with its own permissions; repeatable",
		addedTo(&o.calls, parseCall))
	flags.Func("ask",
		"require approval for every call of the tools that match `GLOB`, such as file_*; takes precedence over --approve-tool and the policy's \"approve\"; repeatable",
		addedTo(&o.asks, parseAsk))
	flags.Func("approve-tool",
		"run the destructive tool `NAME` without asking for approval; repeatable",
		addedTo(&o.approved, parseApproval))
	flags.Func("secret",
		"bind a secret to one host, for tools that request it: `NAME=env:VAR@HOST` or NAME=file:PATH@HOST; repeatable",
		o.addSecret)
}

// operator holds what the user of the command decided about tools.
type operator struct {
	options *options
	policy  *manifests.Policy // the zero value without --config
	flags   *manifests.Policy // what flags grant to all tools and say about approvals
	profile manifests.Profile
	context map[string]string // context values that the host fills in
}

// operator reads the policy and combines it with the flags.
func (o *options) operator() (*operator, error) {
	op := &operator{options: o, policy: &manifests.Policy{}, flags: o.policy()}
	var err error
	if o.config != "" {
		if op.policy, err = manifests.LoadPolicy(o.config); err != nil {
			return nil, configFailure(o.config, err)
		}
	}
	if op.profile, err = op.policy.ProfileNamed(o.profile); err != nil {
		return nil, failed(exitUsage, "--profile: "+err.Error())
	}
	op.context, err = op.contextValues()
	return op, err
}

// configFailure returns the failure for a policy that cannot be read.
func configFailure(file string, err error) *failure {
	if errors.Is(err, manifests.ErrInvalid) {
		return &failure{exitUsage, messagesOf(err)}
	}
	return failed(exitUsage, fmt.Sprintf("--config %q: %s", file, reasonOf(err)), "name a policy, which is a regular file that can be read")
}

// asks reports whether the policy or a flag requires approval for calls of a tool.
func (op *operator) asks(m *manifests.Manifest) bool {
	return len(op.policy.For(m.Name, m.File).Ask)+len(op.flags.For(m.Name, m.File).Ask) > 0
}

// contextValues returns the values of context parameters. A flag can set a value only if the policy
// does not assign it another source.
func (op *operator) contextValues() (map[string]string, error) {
	values := map[string]string{}
	for _, source := range op.policy.Context {
		if source.From == manifests.FromFixed {
			values[source.Name] = source.Value
		}
	}
	var wrong []message
	for _, flag := range op.options.context {
		source, named := op.contextSource(flag.key)
		switch {
		case named && source.From == manifests.FromFixed:
			wrong = append(wrong, message{fmt.Sprintf("--context %s: %s fixes its value", flag.key, source.Origin), []string{"remove the flag"}})
		case named && source.From != manifests.FromFlag:
			wrong = append(wrong, message{fmt.Sprintf("--context %s: %s says that %s comes from the %s; the command line has none", flag.key, source.Origin, source.Name, source.From),
				[]string{"write \"from: flag\" there to set it with --context"}})
		default:
			values[flag.key] = flag.value
		}
	}
	if len(wrong) > 0 {
		return nil, &failure{exitUsage, wrong}
	}
	return values, nil
}

// contextSource returns what the policy says about a context value. It compares names without
// regard to case, because many JSON decoders do.
func (op *operator) contextSource(name string) (manifests.ContextSource, bool) {
	for _, source := range op.policy.Context {
		if strings.EqualFold(source.Name, name) {
			return source, true
		}
	}
	return manifests.ContextSource{}, false
}

// contextNote returns what would allow a denied request of a tool whose manifest is in a file, and a note on the source
// of the context value. The remedy has no flag for a value that the policy does not let flags set, and no policy key
// that the policy already has.
func (op *operator) contextNote(denial tool.Denial, file string) (remedy, []string) {
	r := remedyOf(denial.Allow, file)
	source, named := op.contextSource(denial.Value)
	if denial.Permission != "context" || !named {
		return r, nil
	}
	if !r.isGrant() {
		r.policy = "" // the policy already has a key for the value
	}
	if source.From == manifests.FromFlag {
		return r, []string{fmt.Sprintf("or write {from: fixed, value: VALUE} for it at %s", source.Origin)}
	}
	if r.flags = ""; source.From == manifests.FromFixed {
		return r, nil
	}
	return r, []string{fmt.Sprintf("%s says that %s comes from the %s, and the command line has none; write \"from: flag\" there to set it with --context",
		source.Origin, source.Name, source.From)}
}

// file returns the file name of the operator's policy, or of the one to create.
func (op *operator) file() string { return cmp.Or(op.options.config, policyName) }

// unusedFile returns a hint about a policy here that was not named. It is never used automatically,
// because a folder with somebody else's tools could contain its own policy.
func (op *operator) unusedFile() []string {
	if op.options.config != "" {
		return nil
	}
	if info, err := os.Stat(policyName); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return []string{fmt.Sprintf("there is a %s here; --config %s uses it", policyName, policyName)}
}
