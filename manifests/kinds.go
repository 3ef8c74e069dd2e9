package manifests

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/caisson-run/caisson/manifests/internal/keypath"
	"github.com/caisson-run/caisson/manifests/permission"
)

// kinds returns the table of all kinds of permissions, in display order. The code for one kind is
// in its own file, permission_NAME.go. Its fields are in [Permissions], [Grant], [Grants] and
// [Deny]. It is built once and never written to.
var kinds = sync.OnceValue(func() []kind {
	return []kind{files(), network(), secrets(), contextValues(), environment(), keyValue(), tools(), functions(), languageModel()}
})

// Permissions is what a tool requests. It is an upper limit and grants nothing.
type Permissions struct {
	Files   []FilePermission
	Network []NetworkPermission
	Secrets []SecretPermission
	Env     []string
	KV      *KVPermission // nil if not requested
	Tools   []string      // tools it calls, by exact name; may include the tool's own
	// Functions are those of the embedding program that it calls; see [FunctionGrant].
	Functions []string
	LLM       *LLMPermission // nil if not requested
}

// Grant grants permissions to the tools that it names.
type Grant struct {
	// Binding applies to every element below that does not set its own.
	Binding
	// Tools are names, or globs as in path.Match. There is at least one.
	Tools []string
	// Source, if not empty, is the folder or manifest from which tools must have been loaded.
	Source  string
	Files   []FileGrant
	Network []NetworkGrant
	Secrets []SecretGrant
	Context []ContextGrant
	Env     []EnvGrant
	Calls   []CallGrant
	// Functions are those of the embedding program.
	Functions []FunctionGrant
}

// Grants are what the operator grants to one tool. The tool gets what its manifest requests and
// Grants contains, minus Deny. The zero value grants nothing.
type Grants struct {
	Files   []FileGrant
	Network []NetworkGrant
	Secrets []SecretGrant
	Context []ContextGrant
	Env     []EnvGrant
	Calls   []CallGrant
	// Functions are those of the embedding program.
	Functions []FunctionGrant
	Deny      []Deny
	// Approved lets calls of a destructive tool run without approval of each call.
	Approved []ApprovalGrant
	// Ask makes every call require approval, even if Approved is set. Each element says where this
	// is written, for display: "caisson.yaml:14".
	Ask []string
	// NoNetwork and NoWrites are denials of a profile for all tools: the whole network, and all
	// writing to files. Each names the profile, for display. Empty denies nothing.
	NoNetwork, NoWrites string
}

// Deny denies what any grant allows. Exactly one field besides Origin is set.
type Deny struct {
	Origin  string
	Files   *FileDeny
	Network *NetworkDeny
	Secret  string // the secret's name
	Context string
	Env     string
	Call    string // the name of the tool that must not be called
	// Function is the name of a function that must not be called; see [FunctionGrant].
	Function string
}

// kind is one kind of permission: its keys in manifests and policies, and how they are read and
// written. A nil part means that the document has no such key.
type kind struct {
	name  permission.Kind // the name in decisions and receipts
	asks  *asking
	gives *giving
	takes *taking
}

// asking is the part of a kind in a manifest's permissions.
type asking struct {
	key    string
	schema string // a JSON Schema; it may refer to the definitions of manifest.schema.json
	read   func(r *reader, n *node, at string, p *Permissions)
	write  func(p Permissions) *node // for receipts; nil if they never write this kind
}

// giving is the part of a kind in an element of a policy's grants. Make one with [grants].
type giving struct {
	key    string
	schema string // a JSON Schema; it may refer to the definitions of policy.schema.json
	read   func(r *reader, n *node, at string, g *Grant)
	write  func(g Grant) *node // for receipts
	// bind copies the elements and sets the grant's binding on each that does not have its own.
	bind func(g *Grant)
	hand func(from Grant, to *Grants)
	say  func(g Grants) []Statement
}

// taking is the part of a kind in an element of a policy's deny list.
type taking struct {
	key    string
	schema string
	read   func(r *reader, n *node, at string, d *Deny)
	// say returns what a denial covers, without its origin, or false if it is of another kind.
	say func(d Deny) (Statement, bool)
}

// grants returns a giving for a kind of which a grant has a list.
func grants[G any, P interface {
	*G
	binding() *Binding
}](key, schema string, in func(*Grant) *[]G, of func(*Grants) *[]G, read func(*reader, *node, string) []G, write func([]G) *node, about func(G) Statement) *giving {
	return &giving{
		key: key, schema: schema,
		read:  func(r *reader, n *node, at string, g *Grant) { *in(g) = read(r, n, at) },
		write: func(g Grant) *node { return write(*in(&g)) },
		bind: func(g *Grant) {
			elements := slices.Clone(*in(g))
			for i := range elements {
				own := P(&elements[i]).binding()
				own.Origin, own.SHA256 = cmp.Or(own.Origin, g.Origin), cmp.Or(own.SHA256, g.SHA256)
			}
			*in(g) = elements
		},
		hand: func(from Grant, to *Grants) { *of(to) = append(*of(to), *in(&from)...) },
		say: func(g Grants) []Statement {
			var said []Statement
			for i, element := range *of(&g) {
				s := about(element)
				s.Binding, s.Key = *P(&element).binding(), cmp.Or(s.Key, keypath.Index(key, i))
				said = append(said, s)
			}
			return said
		},
	}
}

// Binding says where a grant is written, and to which module it is restricted.
type Binding struct {
	// Origin is where the operator wrote the grant, for display: "caisson.yaml:14" or one of the
	// program's flags. It may be empty. Receipts include it, and guests and models read receipts,
	// so it should not contain a host path.
	Origin string
	// SHA256 restricts the grant to the module with this digest, in 64 lower-case hex digits. Empty
	// means any module.
	SHA256 string
}

func (b *Binding) binding() *Binding { return b }

// Statement is one element of what an operator grants or denies, of any kind.
type Statement struct {
	Binding // of a denial, Origin only
	Kind    permission.Kind
	// Key is its place in the grant, such as "files[0]". It is empty for a denial.
	Key string
	// About describes for people what it covers, such as "the directory /project". Fix says what to
	// write if no manifest requests that. Both are empty for calls of a tool, which Tool names.
	About, Fix, Tool string

	asked     func(*Manifest) bool
	canonical func() (any, error)
}

// Concerns reports whether a manifest requests any of what the statement covers, or something that
// cannot be parsed.
func (s Statement) Concerns(m *Manifest) bool { return s.asked(m) }

// Canonical returns a text that is equal for statements with the same meaning, whatever their place
// and the order of their lists. Host paths in it are absolute, resolved against the working
// directory. Different texts do not prove that two statements differ.
func (s Statement) Canonical() (string, error) {
	value, err := s.canonical()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(value)
	return fmt.Sprintf("%s %s", s.Kind, text), err
}

// Statements returns what is granted, by kind in the table's order.
func (g Grants) Statements() []Statement {
	var all []Statement
	for _, k := range kinds() {
		if k.gives != nil {
			for _, s := range k.gives.say(g) {
				s.Kind = k.name
				all = append(all, s)
			}
		}
	}
	return all
}

// Statement returns what is denied. For the zero value, the statement covers nothing.
func (d Deny) Statement() Statement {
	for _, k := range kinds() {
		if k.takes == nil {
			continue
		}
		if s, found := k.takes.say(d); found {
			s.Kind, s.Origin = k.name, d.Origin
			return s
		}
	}
	return Statement{asked: func(*Manifest) bool { return false }, canonical: func() (any, error) { return nil, nil }}
}

// requestMembers returns the requested permissions as members of an object.
func requestMembers(p Permissions) []member {
	var members []member
	for _, k := range kinds() {
		if k.asks != nil && k.asks.write != nil {
			members = append(members, keyed(k.asks.key, k.asks.write(p)))
		}
	}
	return members
}

// grantMembers returns a grant's permissions as members of an object, sorted by key.
func grantMembers(g Grant) []member {
	var members []member
	for _, k := range kinds() {
		if k.gives != nil {
			members = append(members, keyed(k.gives.key, k.gives.write(g)))
		}
	}
	slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.key, b.key) })
	return members
}

// permissions reads the permissions of a manifest.
func (r *reader) permissions(n *node, at string) (p Permissions) {
	var fields []field
	for _, k := range kinds() {
		if k.asks != nil {
			fields = append(fields, field{k.asks.key, "", func(n *node, at string) { k.asks.read(r, n, at, &p) }})
		}
	}
	r.object(n, at, fields...)
	return p
}

// grantFields returns the keys of a grant that grant something, sorted.
func (r *reader) grantFields(g *Grant) []field {
	var fields []field
	for _, k := range kinds() {
		if k.gives != nil {
			fields = append(fields, field{k.gives.key, "", func(n *node, at string) { k.gives.read(r, n, at, g) }})
		}
	}
	slices.SortFunc(fields, func(a, b field) int { return cmp.Compare(a.key, b.key) })
	return fields
}

// denyFields returns the keys of an element of the deny list that deny something.
func (r *reader) denyFields(d *Deny) []field {
	var fields []field
	for _, k := range kinds() {
		if k.takes != nil {
			fields = append(fields, field{k.takes.key, "", func(n *node, at string) { k.takes.read(r, n, at, d) }})
		}
	}
	return fields
}

func keysOf(fields []field) []string {
	var keys []string
	for _, f := range fields {
		keys = append(keys, f.key)
	}
	return keys
}
