package manifests

import "net/netip"

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

// ApprovalGrant approves of all calls of a tool.
type ApprovalGrant struct{ Binding }

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

// FileGrant gives a host directory to the tools that ask for its guest path.
type FileGrant struct {
	Binding
	Path string // the guest path, absolute and clean: "/project"
	// Host is the directory. An element of the path may be "{key}", which stands for
	// the call's context value of that name: "./workspaces/{project_id}".
	Host   string
	Access Access // empty: read
	// Quota bounds the directory, counted over all calls.
	Quota Quota
}

// Quota bounds a directory with everything in it. A zero field is the runtime's default.
type Quota struct {
	Bytes Bytes
	Files int
}

// NetworkGrant lets tools send requests to the hosts that match. Empty Methods, Schemes and
// Paths mean GET, https and /; they are filled in by [LoadPolicy] and must be by whoever
// makes grants in Go.
type NetworkGrant struct {
	Binding
	NetworkPermission
	// Addresses are the networks beside the public internet in which the host may be, such
	// as 10.0.0.0/8. A grant whose Host is an address, or is localhost, has that one anyway.
	Addresses []netip.Prefix
	// Connect, if not empty, is the address and port to which connections go, whatever the
	// host's name resolves to: "127.0.0.1:8443". It is for tests and for proxies of one's
	// own, and is granted as such.
	Connect string
	// Authorities is a file of certificates in PEM that are trusted for this host, beside
	// the system's. Empty: the system's alone.
	Authorities string
}

// SecretGrant binds a secret to the one host that may receive it.
type SecretGrant struct {
	Binding
	Name string
	From SecretSource
	Host string // a lower-case name or an IP address, without wildcard
	// Ports and Schemes narrow the host down to origins. Empty: the scheme's own port, and
	// https.
	Ports   []int
	Schemes []string
	// Place must be the one that the manifest asks for. The zero value allows any header: what
	// is put into a query or a body an API may keep and show, so the grant has to name it.
	Place SecretPlace
	// Force allows a value of less than 16 bytes, which responses cannot be masked for.
	Force bool
}

// SecretSource says where the operator keeps a secret's value. Exactly one of Env, File and
// Age is set.
type SecretSource struct {
	Env  string // the name of an environment variable of the host
	File string // a file that holds the value, without the line break at its end
	// Age is a file encrypted with age (age-encryption.org/v1) that holds lines of
	// NAME=value, and Identity a file with the key to it.
	Age, Identity string
	// Key is the name in the age file; empty: the secret's own.
	Key string
}

// ContextGrant lets tools be filled in with a context value.
type ContextGrant struct {
	Binding
	Name string
}

// GrantContext grants context values by name.
func GrantContext(names ...string) []ContextGrant {
	grants := make([]ContextGrant, len(names))
	for i, name := range names {
		grants[i].Name = name
	}
	return grants
}

// EnvGrant gives tools an environment variable.
type EnvGrant struct {
	Binding
	Name, Value string
}

// CallGrant lets tools call another tool, whose own permissions hold for what it then does.
type CallGrant struct {
	Binding
	// Tool is the name of the tool that may be called, letter by letter. An alias is a name of
	// its own.
	Tool string
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

// FileDeny takes a directory away: all of it, or (Access: read-write) writing to it.
type FileDeny struct {
	// Path is a guest path. Mounts at it and below it are denied.
	Path   string
	Access Access // ReadWrite: deny writing alone. Read or empty: deny all
}

// NetworkDeny takes away requests that match all of its fields; an empty one matches
// everything.
type NetworkDeny struct {
	// Host is as in [NetworkPermission]. An address here does not cover names that lead to it:
	// that takes Addresses.
	Host      string
	Ports     []int
	Methods   []string
	Schemes   []string
	Paths     []string
	Addresses []netip.Prefix // of the connection
}
