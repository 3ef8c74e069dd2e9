package manifests

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/internal/permission"
)

// kinds returns the table of all kinds of permissions, in display order. The code for one kind is
// in its own file, permission_NAME.go. Its fields are in [Permissions], [Grant], [Grants] and
// [Deny]. It is built once and never written to.
var kinds = sync.OnceValue(func() []kind {
	return []kind{files(), network(), secrets(), contextValues(), environment(), keyValue(), tools(), functions(),
		languageModel()}
})

// Permissions are the requests of a tool. They are an upper limit and grant nothing.
type Permissions struct {
	Files   []FilePermission
	Network []NetworkPermission
	Secrets []SecretPermission
	Env     []string
	KV      *KVPermission // nil if not requested
	Tools   []string      // tools it calls, by exact name; may include the tool's own
	// Functions are those of the embedding program that it calls; see [NameGrant].
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
	Source string
	// Grants are the permissions. The fields after Functions are not used: a [Policy] has separate lists for them.
	Grants
}

// Grants are what the operator grants to one tool. The tool gets what its manifest requests and
// Grants contains, minus Deny. The zero value grants nothing.
type Grants struct {
	Files   []FileGrant
	Network []NetworkGrant
	Secrets []SecretGrant
	Context []NameGrant
	Env     []EnvGrant
	Calls   []NameGrant
	// Functions are those of the embedding program.
	Functions []NameGrant
	Deny      []Deny
	// Approved lets calls of a destructive tool run without approval of each call.
	Approved []Binding
	// Ask makes every call require approval, even if Approved is set. Each element says where this
	// is written, for display: "caisson.yaml:14".
	Ask []string
	// NoNetwork and NoWrites are denials of a profile for all tools: the whole network, and all
	// writing to files. Each names the profile, for display. Empty denies nothing.
	NoNetwork, NoWrites string
	// RecordInputs has the host's answers to the tool's calls recorded, so that the calls can be replayed.
	RecordInputs bool
}

// Deny denies what any grant allows. Exactly one field besides Origin is set.
type Deny struct {
	Origin  string
	Files   *FilePermission
	Network *NetworkDeny
	Secret  string // the secret's name
	Context string
	Env     string
	Call    string // the name of the tool that must not be called
	// Function is the name of a function that must not be called; see [NameGrant].
	Function string
}

// kind is one kind of permission, as documents have it. A part is nil if a document has no such key.
type kind struct {
	name  permission.Kind // the name in decisions and receipts
	asks  *asking
	gives *giving
	takes *taking
}

type asking struct {
	key   string
	read  func(r *reader, n *node, at string, p *Permissions)
	write func(p Permissions) *node // for receipts; nil if they never write this kind
}

// giving is the part of a kind in an element of a policy's grants. Make one with [grants].
type giving struct {
	key   string
	read  func(r *reader, n *node, at string, g *Grants)
	write func(g Grants) *node // for receipts
	// hand appends the elements of one to those of the other, with the binding where they do not have their own.
	hand func(from Grants, binding Binding, to *Grants)
	say  func(g Grants) []Element
}

type taking struct {
	key  string
	read func(r *reader, n *node, at string, d *Deny)
	// covers reports whether a denial is of the kind, and say returns what it covers, without its origin.
	covers func(d Deny) bool
	say    func(d Deny) Element
}

// grants returns a giving for a kind of which a grant has a list.
func grants[G any, P interface {
	*G
	Inherit(Binding) Binding
}](
	key string, of func(*Grants) *[]G, read func(*reader, *node, string) []G, write func([]G) *node, about func(G) Element,
) *giving {
	return &giving{
		key:   key,
		read:  func(r *reader, n *node, at string, g *Grants) { *of(g) = read(r, n, at) },
		write: func(g Grants) *node { return write(*of(&g)) },
		hand: func(from Grants, binding Binding, to *Grants) {
			for _, element := range *of(&from) {
				P(&element).Inherit(binding)
				*of(to) = append(*of(to), element)
			}
		},
		say: func(g Grants) []Element {
			var said []Element
			for i, element := range *of(&g) {
				e := about(element)
				e.Binding, e.Key = P(&element).Inherit(Binding{}), cmp.Or(e.Key, keypath.Index(key, i))
				said = append(said, e)
			}
			return said
		},
	}
}

// Binding says where a grant is written, and to which module it is restricted.
type Binding = permission.Binding

// Element is one element of an operator's grants or denials, of any kind.
type Element struct {
	Binding // of a denial, Origin only
	Kind    permission.Kind
	// Key is its place in the grant, such as "files[0]". It is empty for a denial.
	Key string
	// About describes the covered resource for people, such as "the directory /project". Fix says what to write if no
	// manifest requests it. Both are empty for calls of a tool, which Tool names.
	About, Fix, Tool string

	name      string // for kinds that are a plain name; else empty
	asked     func(*Manifest) bool
	canonical func() (any, error)
}

// Concerns reports whether a manifest requests any of what the element covers, or something that cannot be parsed.
func (e Element) Concerns(m *Manifest) bool { return e.asked(m) }

// Canonical returns a text that is equal for elements with the same meaning, whatever their place
// and the order of their lists. Host paths in it are absolute, resolved against the working
// directory. Different texts do not prove that two elements differ.
func (e Element) Canonical() (string, error) {
	value, err := e.canonical()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(value)
	return fmt.Sprintf("%s %s", e.Kind, text), err
}

// Elements returns the elements of the grants, by kind in the table's order.
func (g Grants) Elements() []Element {
	var all []Element
	for _, k := range kinds() {
		if k.gives == nil {
			continue
		}
		for _, e := range k.gives.say(g) {
			e.Kind = k.name
			all = append(all, e)
		}
	}
	return all
}

// Element returns the denied element. For the zero value, it covers nothing.
func (d Deny) Element() Element {
	for _, k := range kinds() {
		if k.takes != nil && k.takes.covers(d) {
			e := k.takes.say(d)
			e.Kind, e.Origin = k.name, d.Origin
			return e
		}
	}
	return Element{asked: func(*Manifest) bool { return false }, canonical: func() (any, error) { return nil, nil }}
}

// NameRules returns the rules of a kind of permission that is a plain name, such as "context" or "tools", for the names
// that a manifest requests. Grants in the result have the indexes that they have in the field of the kind.
func (g Grants) NameRules(kind permission.Kind, requests []string, module string) permission.Rules {
	rules := permission.Rules{Module: module}
	for _, name := range requests {
		rules.Requests = append(rules.Requests, permission.NewName(kind, name))
	}
	for _, e := range g.Elements() {
		if e.Kind == kind {
			rules.Grants = append(rules.Grants, e.named())
		}
	}
	for _, deny := range g.Deny {
		if e := deny.Element(); e.Kind == kind {
			rules.Denials = append(rules.Denials, e.named())
		}
	}
	return rules
}

func (e Element) named() permission.Statement {
	return permission.Statement{Binding: e.Binding, Rule: permission.NewName(e.Kind, e.name)}
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
func (r *reader) grantFields(g *Grants) []field {
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
