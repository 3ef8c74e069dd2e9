package manifests

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/mistake"
)

// PolicyV1 is the required value of a policy's schema key.
const PolicyV1 = "caisson-config/v1"

// Policy has an operator's decisions about tools, from a file such as caisson.yaml. Get one from [LoadPolicy]. The zero
// value grants, denies and loads nothing.
type Policy struct {
	// File is the path that was given for the policy.
	File string
	// Tools are folders and manifests to load, in order of precedence. All paths in a Policy are
	// relative to the working directory: paths in the file have been joined to its directory.
	Tools []string
	// Profile names the profile that limits all tools. Empty means standard.
	Profile string
	// Profiles are the profiles that the policy defines, in its order, with the fields of the
	// profiles they extend filled in.
	Profiles []Profile
	Context  []ContextSource
	Grants   []Grant
	Deny     []PolicyDeny
	// Ask overrides Approve: calls of a tool named in both require approval.
	Ask     []PolicyAsk
	Approve []PolicyApproval
	Redact  []PolicyRedaction
	// RecordInputs names the tools whose calls are recorded with what the host answered, so that they can be replayed.
	RecordInputs []PolicyAsk

	places places // of the keys in the source
}

// Problem returns a problem at a key in File, such as "grants[0].files[1]", or else at the nearest enclosing key.
func (p *Policy) Problem(path string, kind mistake.Kind, message, fix string) Problem {
	return problemAt(p.File, p.places.near(path), path, kind, message, fix)
}

// Profile is an upper limit for all tools.
type Profile struct {
	Name string
	// Limits are the maximum limits of a call. A zero field means the runtime's own maximum.
	Limits    Limits
	NoNetwork bool
	NoWrites  bool
}

// ContextOrigin says who may set a context value.
type ContextOrigin string

// Origins of context values.
const (
	FromToken   ContextOrigin = "token"   // a claim of the caller's token
	FromFlag    ContextOrigin = "flag"    // the command line that starts the host
	FromSession ContextOrigin = "session" // the session
	FromFixed   ContextOrigin = "fixed"   // the policy itself
)

// ContextSource says where one context value comes from.
type ContextSource struct {
	Origin string // where this is written
	Name   string
	From   ContextOrigin
	Value  string // for Fixed
}

// PolicyDeny denies something to the tools that it names, or to all tools if it names none.
type PolicyDeny struct {
	Tools []string
	Deny
}

// LoadPolicy reads and checks the policy in a file, such as caisson.yaml. It fails as [Load] does.
func LoadPolicy(path string) (*Policy, error) { return load(path, ParsePolicy) }

// ParsePolicy checks a policy and fills in its defaults. The file name selects the format, as for
// [Parse]. It also begins the origins of grants, and relative paths are joined to its directory.
// The error is an [*Error] with all problems.
func ParsePolicy(file string, source []byte) (*Policy, error) {
	return parse(file, source, policySubject, (*reader).policy)
}

const (
	maxGrants       = 4096 // also the maximum number of denials and approvals
	maxContextValue = 1024 // bytes
)

// toolPattern matches a tool's name that may contain the wildcards of path.Match.
var toolPattern = regexp.MustCompile(`^[a-zA-Z0-9_*?^\[\]-]{1,128}$`)

// policy reads a whole document. Its result is valid only if there are no problems.
func (r *reader) policy(root *node) *Policy {
	r.places = root.places()
	if r.isOther(root, manifestSubject) {
		return nil
	}
	p := &Policy{File: r.file, places: r.places}
	r.object(root, "",
		required("schema", "schema: "+PolicyV1, new(string), choice(r, PolicyV1)),
		optional("tools", &p.Tools, r.sources),
		optional("profile", &p.Profile, r.name),
		optional("profiles", &p.Profiles, r.profiles),
		optional("context", &p.Context, r.contextSources),
		optional("grants", &p.Grants, listOf(r, maxGrants, r.grant)),
		optional("deny", &p.Deny, listOf(r, maxGrants, r.deny)),
		optional("ask", &p.Ask, r.asks),
		optional("approve", &p.Approve, listOf(r, maxGrants, r.approval)),
		optional("redact", &p.Redact, listOf(r, maxGrants, r.redaction)),
		optional("record_inputs", &p.RecordInputs, r.asks),
	)
	r.checkProfile(root, p)
	return p
}

// origin returns a place for display, without the directory: guests and models read it in receipts.
func (r *reader) origin(at position) string {
	return fmt.Sprintf("%s:%d", filepath.Base(r.file), at.line)
}

func (r *reader) sources(n *node, path string) []string {
	return distinctOf(r, maxList, func(n *node, path string) (source string) {
		r.object(n, path, required("path", "path: and a folder with tools, such as ./wasm-tools", &source, r.hostPath))
		return source
	})(n, path)
}

func (r *reader) contextSources(n *node, path string) []ContextSource {
	var sources []ContextSource
	var seen []string
	r.mapping(n, path, maxContext, func(m member, path string) {
		if r.key(m, path, parameterName, settingFix) {
			if same := equalFold(seen, m.key); same != "" {
				r.add(m.at, path, mistake.Conflict, fmt.Sprintf("%q is the same name as %q", m.key, same),
					"keep one of the two; case makes no difference")
			}
			seen = append(seen, m.key)
		}
		sources = append(sources, r.contextSource(m, path))
	})
	return sources
}

func (r *reader) contextSource(m member, path string) ContextSource {
	source := ContextSource{Origin: r.origin(m.at), Name: m.key}
	read := r.object(m.value, path,
		required("from", "from: and token, flag, session or fixed", &source.From,
			choice(r, FromToken, FromFlag, FromSession, FromFixed)),
		field{"value", "", func(n *node, path string) {
			source.Value = r.value(maxContextValue)(n, path)
			if n.kind == textNode && n.text == "" {
				r.invalid(n, path, "the text is empty", "write the value that every call gets")
			}
		}},
	)
	if !read || source.From == "" {
		return source
	}
	given := m.value.get("value") != nil
	inner := path + ".value"
	switch {
	case source.From == FromFixed && !given:
		r.add(m.value.at, inner, mistake.Missing, "the key value is required with from: fixed",
			"add value: and what every call gets")
	case source.From != FromFixed && given:
		r.conflict(inner, fmt.Sprintf("the value comes from the %s", source.From), "remove value, or write from: fixed")
	}
	return source
}

// somePatterns reads a non-empty list of tool names and globs. orElse ends the fix for an empty one.
func (r *reader) somePatterns(orElse string) parser[[]string] {
	return func(n *node, at string) []string {
		n.note("minItems", intOf(1))
		if n.kind == listNode && len(n.elements) == 0 {
			r.invalid(n, at, "the list names no tool", `write names, or globs such as "file_*"`+orElse)
		}
		return distinctOf(r, maxList, r.pattern)(n, at)
	}
}

func (r *reader) pattern(n *node, at string) string {
	const fix = `write a tool's name, or a glob such as "file_*": * stands for any text, ? for one character, ` +
		`[ab] for one of several`
	text := r.word(toolPattern, fix)(n, at)
	if _, err := path.Match(text, ""); err != nil {
		r.invalid(n, at, fmt.Sprintf("%q is not a glob: syntax error", clip(text)), fix)
		return ""
	}
	return text
}

// For returns what the policy grants, denies, requires approval for and approves for a tool. It combines all elements
// that name the tool and apply to its source, in the policy's order. The source is the path of the folder or manifest
// that the tool was loaded from. A grant with a source grants nothing to a tool without one. Relative paths start at
// the working directory, and links are not followed. For does not set NoNetwork and NoWrites, which come from the
// profile. The result for a nil policy is zero.
func (p *Policy) For(tool, source string) Grants {
	var given Grants
	if p == nil {
		return given
	}
	for _, grant := range p.Grants {
		if !concerns(grant.Tools, grant.Source, tool, source) {
			continue
		}
		grant.addTo(&given)
	}
	for _, deny := range p.Deny {
		if len(deny.Tools) == 0 || names(deny.Tools, tool) {
			given.Deny = append(given.Deny, deny.Deny)
		}
	}
	p.addApprovals(&given, tool, source)
	given.RecordInputs = slices.ContainsFunc(p.RecordInputs,
		func(named PolicyAsk) bool { return isNamed(named.Tool, tool) })
	return given
}

// addTo adds the grant's elements, with its binding where they do not have their own.
func (g Grant) addTo(all *Grants) {
	for _, k := range kinds() {
		if k.gives != nil {
			k.gives.hand(g.Grants, g.Binding, all)
		}
	}
}

// concerns reports whether a list of names and globs includes the tool and it was loaded from the folder, if given.
func concerns(patterns []string, folder, tool, source string) bool {
	return names(patterns, tool) && (folder == "" || isFrom(source, folder))
}

// names reports whether a list of names and globs includes the tool. Globs in policies are always valid.
func names(patterns []string, tool string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return isNamed(pattern, tool) })
}

func isNamed(pattern, tool string) bool {
	matches, err := path.Match(pattern, tool)
	return err == nil && matches
}

// isFrom reports whether a tool's source is known to be the given file or folder, or below it.
func isFrom(source, folder string) bool {
	if source == "" {
		return false
	}
	source, err := filepath.Abs(source)
	folder, folderErr := filepath.Abs(folder)
	inner, innerErr := filepath.Rel(folder, source)
	return cmp.Or(err, folderErr, innerErr) == nil && filepath.IsLocal(inner)
}

// toolFields returns the keys that say to which tools an element of a policy applies.
func (r *reader) toolFields(tools *[]string, source, sha256 *string) []field {
	return []field{
		required("tools", `tools: and a list of names, or globs such as "file_*"`, tools, r.somePatterns("")),
		optional("source", source, r.hostPath),
		optional("sha256", sha256, r.digest),
	}
}

// grant reads one element of a policy's grants. It may give nothing, which is safe; package unapplied finds it.
func (r *reader) grant(n *node, path string) Grant {
	g := Grant{Binding: Binding{Origin: r.origin(n.at)}}
	r.object(n, path, append(r.toolFields(&g.Tools, &g.Source, &g.SHA256), r.grantFields(&g.Grants)...)...)
	var bound Grants
	g.addTo(&bound)
	g.Grants = bound
	return g
}

func (r *reader) deny(n *node, path string) PolicyDeny {
	d := PolicyDeny{Deny: Deny{Origin: r.origin(n.at)}}
	takes := r.denyFields(&d.Deny)
	n.note("oneOf", listed(takes, func(f field) *node {
		return objectOf(keyed("required", listed([]string{f.key}, textOf)))
	}))
	read := r.object(n, path, append([]field{
		optional("tools", &d.Tools, r.somePatterns("")),
	}, takes...)...)
	if !read {
		return d
	}
	if keys := keysOf(takes); n.count(keys...) != 1 {
		last := len(keys) - 1
		r.add(n.at, path, mistake.Conflict, "each element denies exactly one thing",
			"give exactly one of "+strings.Join(keys[:last], ", ")+" and "+keys[last])
	}
	return d
}

// PolicyAsk names tools in [Policy.Ask], whose calls require approval even if their manifests do not and the policy
// approves them, or in [Policy.RecordInputs].
type PolicyAsk struct {
	Origin string // where this is written
	Tool   string // a name, or a glob as in path.Match
}

// PolicyApproval approves all calls of the tools that it names, even if they are destructive.
type PolicyApproval struct {
	Binding
	// Tools are names, or globs as in path.Match. There is at least one.
	Tools []string
	// Source is as in [Grant].
	Source string
}

// addApprovals adds the policy's asks and approvals for a tool.
func (p *Policy) addApprovals(given *Grants, tool, source string) {
	for _, ask := range p.Ask {
		if isNamed(ask.Tool, tool) {
			given.Ask = append(given.Ask, ask.Origin)
		}
	}
	for _, approval := range p.Approve {
		if concerns(approval.Tools, approval.Source, tool, source) {
			given.Approved = append(given.Approved, approval.Binding)
		}
	}
}

// asks reads names and globs of tools.
func (r *reader) asks(n *node, path string) []PolicyAsk {
	var asks []PolicyAsk
	for i, pattern := range r.somePatterns(", or remove the key")(n, path) {
		asks = append(asks, PolicyAsk{Origin: r.origin(n.elements[i].at), Tool: pattern})
	}
	return asks
}

func (r *reader) approval(n *node, path string) PolicyApproval {
	a := PolicyApproval{Binding: Binding{Origin: r.origin(n.at)}}
	r.object(n, path, r.toolFields(&a.Tools, &a.Source, &a.SHA256)...)
	return a
}

// PolicyRedaction keeps parts of calls of the tools that it names out of their records.
type PolicyRedaction struct {
	Origin string   // where this is written
	Tools  []string // names, or globs as in path.Match; at least one
	// Arguments and Result are JSON Pointers (RFC 6901) of what is not stored. In place of a name or a number, * means
	// every member or element.
	Arguments, Result []string
}

// jsonPointer matches a JSON Pointer.
var jsonPointer = regexp.MustCompile(`^(/([^~/]|~[01])*)*$`)

const maxPointer = 1024 // bytes

func (r *reader) redaction(n *node, path string) PolicyRedaction {
	redaction := PolicyRedaction{Origin: r.origin(n.at)}
	pointers := listOf(r, maxList, func(n *node, at string) string {
		const fix = `write a JSON Pointer such as /customer/email or /records/*/iban; "" is the whole; ~0 and ~1 are ~ and /`
		text := r.word(jsonPointer, fix)(n, at)
		if len(text) > maxPointer {
			r.invalid(n, at, fmt.Sprintf("%d bytes are over the limit of %d", len(text), maxPointer), fix)
		}
		return text
	})
	if r.object(n, path,
		required("tools", `tools: and a list of names, or globs such as "crm_*"`, &redaction.Tools, r.somePatterns("")),
		optional("arguments", &redaction.Arguments, pointers), optional("result", &redaction.Result, pointers),
	) && len(redaction.Arguments)+len(redaction.Result) == 0 {
		r.add(n.at, path, mistake.Missing, "the element redacts nothing",
			"add arguments or result, with a list of JSON Pointers")
	}
	return redaction
}
