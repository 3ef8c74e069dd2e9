package manifests

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/manifests/internal/keypath"
	"github.com/caisson-run/caisson/manifests/permission"
)

// kinds is the table of all kinds of permissions, in the order in which people are shown them. What
// belongs to one kind alone stands in its own file, permission_NAME.go; its fields stand in
// [Permissions], [Grant], [Grants] and [Deny].
func kinds() []kind {
	return []kind{files(), network(), secrets(), contextValues(), environment(), keyValue(), tools(), languageModel()}
}

// Permissions is what a tool asks for: a ceiling that grants nothing by itself.
type Permissions struct {
	Files   []FilePermission
	Network []NetworkPermission
	Secrets []SecretPermission
	Env     []string
	KV      *KVPermission  // nil where not asked for
	Tools   []string       // that it calls, by their exact names; its own may be among them
	LLM     *LLMPermission // nil where not asked for
}

// Grant gives something to the tools that it names.
type Grant struct {
	// Binding holds for every element below that says nothing else.
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
}

// Grants are what the operator gives to one tool. A tool gets of it what its manifest asks
// for, less what Deny takes away. The zero value gives nothing.
type Grants struct {
	Files   []FileGrant
	Network []NetworkGrant
	Secrets []SecretGrant
	Context []ContextGrant
	Env     []EnvGrant
	Calls   []CallGrant
	Deny    []Deny
	// Approved let calls run without being approved one by one, of a tool that is destructive.
	Approved []ApprovalGrant
	// Ask has every call wait for approval, whatever else is said. Each names where that was
	// written, for people: "caisson.yaml:14".
	Ask []string
	// NoNetwork and NoWrites are what a profile takes away from everybody: all of the
	// network, and all writing to files. Each names the profile, for people; empty takes
	// nothing away.
	NoNetwork, NoWrites string
}

// Deny takes away what any grant gives. Exactly one of its fields besides Origin is set.
type Deny struct {
	Origin  string
	Files   *FileDeny
	Network *NetworkDeny
	Secret  string // the name
	Context string
	Env     string
	Call    string // the name of the tool that must not be called
}

// kind is one kind of permission: under which keys it stands in manifests and policies, and who reads
// and writes what is there. Where a part is nil, nobody can write it.
type kind struct {
	name  permission.Kind // as decisions and receipts have it
	asks  *asking
	gives *giving
	takes *taking
}

// asking is what manifests have under permissions.
type asking struct {
	key    string
	schema string // a JSON Schema, for editors; it may refer to the definitions of manifest.schema.json
	read   func(r *reader, n *node, at string, p *Permissions)
	write  func(p Permissions) *node // for receipts; nil for a kind that none asks for
}

// giving is what policies have in an element of their grants. Make one with [grants].
type giving struct {
	key    string
	schema string // likewise, of policy.schema.json
	read   func(r *reader, n *node, at string, g *Grant)
	write  func(g Grant) *node // for receipts
	// bind gives a grant's binding to a copy of each element that has none of its own.
	bind func(g *Grant)
	hand func(from Grant, to *Grants)
	say  func(g Grants) []Statement
}

// taking is what policies have in an element of their deny list.
type taking struct {
	key    string
	schema string
	read   func(r *reader, n *node, at string, d *Deny)
	// say returns what a denial is about, without where it stands, or false for one of another kind.
	say func(d Deny) (Statement, bool)
}

// grants returns a giving of which a grant has a list.
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

// Binding says where a grant stands, and for which module it holds.
type Binding struct {
	// Origin is where the operator wrote the grant, for people: "caisson.yaml:14" or a
	// flag of the program's. It may be empty. Receipts name it, which guests and models
	// read: it should hold no path of the host.
	Origin string
	// SHA256 binds the grant to the module with this digest, in 64 lower-case hex digits.
	// Empty: whatever the module is.
	SHA256 string
}

func (b *Binding) binding() *Binding { return b }

// Statement is one element of what an operator gives or takes away, whatever its kind.
type Statement struct {
	Binding // of a denial, Origin alone
	Kind    permission.Kind
	// Key is where it stands in its grant: "files[0]". Empty: it is a denial.
	Key string
	// About says for people what it is about, such as "the directory /project", and Fix what to write
	// where no manifest asks for that. Both are empty for calls of a tool, which is Tool.
	About, Fix, Tool string

	asked     func(*Manifest) bool
	canonical func() (any, error)
}

// Concerns reports whether a manifest asks for some of what the statement is about, or for what cannot
// be read.
func (s Statement) Concerns(m *Manifest) bool { return s.asked(m) }

// Canonical returns a text that is equal for statements of one meaning, wherever they stand and whatever
// the order of their lists. Paths of the host are absolute in it, from the working directory. That two
// texts differ does not tell that two statements do.
func (s Statement) Canonical() (string, error) {
	value, err := s.canonical()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(value)
	return fmt.Sprintf("%s %s", s.Kind, text), err
}

// Statements returns what is given, kind by kind in the table's order.
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

// Statement returns what is denied. It is about nothing for the zero value.
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

// requestMembers write what permissions ask for.
func requestMembers(p Permissions) []member {
	var members []member
	for _, k := range kinds() {
		if k.asks != nil && k.asks.write != nil {
			members = append(members, keyed(k.asks.key, k.asks.write(p)))
		}
	}
	return members
}

// grantMembers write what a grant gives, sorted.
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

// permissions reads what stands in a manifest under that key.
func (r *reader) permissions(n *node, at string, p *Permissions) {
	var fields []field
	for _, k := range kinds() {
		if k.asks != nil {
			fields = append(fields, field{k.asks.key, "", func(n *node, at string) { k.asks.read(r, n, at, p) }})
		}
	}
	r.object(n, at, fields...)
}

// grantFields are the keys of an element of a policy's grants that give something, sorted.
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

// denyFields are the keys of an element of a policy's deny list that take something away.
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
