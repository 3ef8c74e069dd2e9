package manifests

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"

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
	)
	r.checkProfile(root, p)
	return p
}

// origin returns a place for display. Receipts include it, and guests and models read receipts, so
// it omits the directory.
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
