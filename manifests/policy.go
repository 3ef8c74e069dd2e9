package manifests

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// PolicyV1 is the value of a policy's schema key.
const PolicyV1 = "caisson-config/v1"

// Policy is what an operator says about tools, in a file such as caisson.yaml. Get one from
// [LoadPolicy]; the zero value says nothing.
type Policy struct {
	// File is where the policy was read from, as it was named.
	File string
	// Tools are folders and manifests to load, in order of precedence. Paths, here and
	// below, are relative to the working directory: those of the file were joined to its
	// folder.
	Tools []string
	// Profile is the name of the profile that bounds all tools; empty: standard.
	Profile string
	// Profiles are those that the policy defines, in its order, complete: what they extend
	// has been filled in.
	Profiles []Profile
	Context  []ContextSource
	Grants   []Grant
	Deny     []PolicyDeny
	// Ask beats Approve: calls of a tool that both name wait for approval.
	Ask     []PolicyAsk
	Approve []PolicyApproval
}

// Profile is a ceiling over all tools.
type Profile struct {
	Name string
	// Limits are the most that a call may have. A zero field is the runtime's own ceiling.
	Limits    Limits
	NoNetwork bool
	NoWrites  bool
}

// ContextOrigin says who may set a context value.
type ContextOrigin string

// The origins of context values.
const (
	FromToken   ContextOrigin = "token"   // a claim of the caller's token
	FromFlag    ContextOrigin = "flag"    // the command line that starts the host
	FromSession ContextOrigin = "session" // the session's own
	Fixed       ContextOrigin = "fixed"   // the policy itself
)

// ContextSource says where one context value comes from.
type ContextSource struct {
	Origin string // where that is written
	Name   string
	From   ContextOrigin
	Value  string // for Fixed
}

// PolicyDeny takes something away from the tools that it names; from all, if it names none.
type PolicyDeny struct {
	Tools []string
	Deny
}

// LoadPolicy reads and checks the policy in a file, such as caisson.yaml. It fails as
// [Load] does.
func LoadPolicy(path string) (*Policy, error) {
	source, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return ParsePolicy(path, source)
}

// ParsePolicy checks a policy and fills in its defaults. The file's name says how to read
// it, as for [Parse], what the origins of grants begin with, and to which folder relative
// paths are joined. The error is an [*Error] with everything that is wrong.
func ParsePolicy(file string, source []byte) (*Policy, error) {
	r := &reader{file: file, subject: policySubject}
	root := r.document(source)
	if root == nil {
		return nil, newError(r.problems)
	}
	p := r.policy(root)
	if len(r.problems) > 0 {
		return nil, newError(r.problems)
	}
	return p, nil
}

const (
	maxGrants       = 4096 // and as many denials and approvals
	maxContextValue = 1024 // bytes
)

// toolPattern is a tool's name, in which path.Match's wildcards may stand.
var toolPattern = regexp.MustCompile(`^[a-zA-Z0-9_*?^\[\]-]{1,128}$`)

// policy reads a whole document. What it returns is of use only if there are no problems.
func (r *reader) policy(root *node) *Policy {
	r.places = root.places()
	p := &Policy{File: r.file}
	r.object(root, "",
		field{"schema", "schema: " + PolicyV1, func(n *node, path string) { r.choice(n, path, PolicyV1) }},
		field{"tools", "", func(n *node, path string) { p.Tools = r.sources(n, path) }},
		field{"profile", "", func(n *node, path string) { p.Profile = r.name(n, path) }},
		field{"profiles", "", func(n *node, path string) { p.Profiles = r.profiles(n, path) }},
		field{"context", "", func(n *node, path string) { p.Context = r.contextSources(n, path) }},
		field{"grants", "", func(n *node, path string) {
			r.list(n, path, maxGrants, func(n *node, path string) { p.Grants = append(p.Grants, r.grant(n, path)) })
		}},
		field{"deny", "", func(n *node, path string) {
			r.list(n, path, maxGrants, func(n *node, path string) { p.Deny = append(p.Deny, r.deny(n, path)) })
		}},
		field{"ask", "", func(n *node, path string) { p.Ask = r.asks(n, path) }},
		field{"approve", "", func(n *node, path string) {
			r.list(n, path, maxGrants, func(n *node, path string) { p.Approve = append(p.Approve, r.approval(n, path)) })
		}},
	)
	r.checkProfile(root, p)
	return p
}

// origin says where something stands, for people. Receipts name it, which guests and models
// read, so it leaves out the folder.
func (r *reader) origin(at position) string {
	return fmt.Sprintf("%s:%d", filepath.Base(r.file), at.line)
}

// sources reads the folders and manifests that tools are loaded from.
func (r *reader) sources(n *node, path string) []string {
	var paths []string
	r.list(n, path, maxList, func(n *node, path string) {
		r.object(n, path, field{"path", "path: and a folder with tools, such as ./wasm-tools", func(n *node, path string) {
			source := r.hostPath(n, path)
			switch {
			case source == "":
			case slices.Contains(paths, source):
				r.add(n.at, path, DuplicateKey, fmt.Sprintf("%q stands twice in the list", clip(n.text)), "keep one of the two")
			default:
				paths = append(paths, source)
			}
		}})
	})
	return paths
}

// contextSources reads who may set which context value.
func (r *reader) contextSources(n *node, path string) []ContextSource {
	var sources []ContextSource
	var seen []string
	r.mapping(n, path, maxContext, func(m member, path string) {
		if r.key(m, path, parameterName, settingFix) {
			if same := equalFold(seen, m.key); same != "" {
				r.add(m.at, path, Conflict, fmt.Sprintf("%q is the same name as %q", m.key, same), "keep one of the two; case makes no difference")
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
		field{"from", "from: and token, flag, session or fixed", func(n *node, path string) {
			source.From = ContextOrigin(r.choice(n, path, string(FromToken), string(FromFlag), string(FromSession), string(Fixed)))
		}},
		field{"value", "", func(n *node, path string) {
			source.Value = r.value(n, path, maxContextValue)
			if n.kind == textNode && n.text == "" {
				r.add(n.at, path, InvalidValue, "the text is empty", "write the value that every call gets")
			}
		}},
	)
	if !read || source.From == "" {
		return source
	}
	given := m.value.get("value") != nil
	inner := path + ".value"
	switch {
	case source.From == Fixed && !given:
		r.add(m.value.at, inner, Missing, "the key value is required with from: fixed", "add value: and what every call gets")
	case source.From != Fixed && given:
		r.add(r.place(inner), inner, Conflict, fmt.Sprintf("the value comes from the %s", source.From), "remove value, or write from: fixed")
	}
	return source
}

// patterns reads a list of tool names and globs, which must not be empty.
func (r *reader) patterns(n *node, at string) []string {
	patterns := r.uniqueTexts(n, at, maxList, r.pattern)
	if n.kind == listNode && len(n.elements) == 0 {
		r.add(n.at, at, InvalidValue, "the list names no tool", `write names, or globs such as "file_*"`)
	}
	return patterns
}

func (r *reader) pattern(n *node, at string) string {
	const fix = `write a tool's name, or a glob such as "file_*": * stands for any text, ? for one character, [ab] for one of several`
	text := r.text(n, at)
	if n.kind != textNode {
		return ""
	}
	if message := checkPattern(text); message != "" {
		r.add(n.at, at, InvalidValue, message, fix)
		return ""
	}
	return text
}

// checkPattern says what keeps a text from being a name or a glob of tools, or returns "".
func checkPattern(text string) (message string) {
	if !toolPattern.MatchString(text) {
		return fmt.Sprintf("%q is not allowed here", clip(text))
	}
	if _, err := path.Match(text, ""); err != nil {
		return fmt.Sprintf("%q is not a glob: %s", clip(text), strings.TrimSuffix(err.Error(), " in pattern"))
	}
	return ""
}
