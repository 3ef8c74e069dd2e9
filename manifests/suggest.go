package manifests

import (
	"slices"
	"strconv"
)

// Suggestions stand in receipts, to be pasted into a manifest or a policy. What they are
// about was chosen by guests and models, so that what no reader would accept, and what is
// not plain text, gets no suggestion: the result is empty.

// SuggestManifest returns the line of a manifest that asks for requests.
func SuggestManifest(p NetworkPermission) string {
	return suggestPermission("network", requestNode(p))
}

// SuggestFileManifest returns the line of a manifest that asks for a directory.
func SuggestFileManifest(guestPath string, access Access) string {
	return suggestPermission("files", objectOf(keyed("path", textOf(guestPath)), keyed("access", accessNode(access))))
}

// SuggestSecretManifest returns the line of a manifest that asks for a secret.
func SuggestSecretManifest(p SecretPermission) string {
	return suggestPermission("secrets", objectOf(
		keyed("name", textOf(p.Name)),
		keyed("header", optional(p.Place.Header)),
		keyed("prefix", optional(p.Place.Prefix)),
		keyed("query", optional(p.Place.Query)),
		keyed("body", optional(p.Place.Body)),
		keyed("host", textOf(p.Host)),
	))
}

// SuggestGrant returns the element of a policy's grants that lets a tool send requests.
func SuggestGrant(tool string, p NetworkPermission) string {
	return suggestGrant(tool, "network", listOf(requestNode(p)))
}

// SuggestFileGrant returns the element of a policy's grants that gives a tool a directory.
// HOSTDIR in it is for the operator to replace.
func SuggestFileGrant(tool, guestPath string, access Access) string {
	return suggestGrant(tool, "files", listOf(objectOf(
		keyed("path", textOf(guestPath)),
		keyed("host", textOf("HOSTDIR")),
		keyed("access", accessNode(access)),
	)))
}

// SuggestSecretGrant returns the element of a policy's grants that is this grant, whose
// value is in an environment variable.
func SuggestSecretGrant(tool string, g SecretGrant) string {
	return suggestGrant(tool, "secrets", listOf(objectOf(
		keyed("name", textOf(g.Name)),
		keyed("from", objectOf(keyed("env", textOf(g.From.Env)))),
		keyed("host", textOf(g.Host)),
		keyed("ports", portsOf(g.Ports)),
		keyed("schemes", textsUnless(g.Schemes, nil)),
		keyed("header", optional(g.Place.Header)),
		keyed("prefix", optional(g.Place.Prefix)),
		keyed("query", optional(g.Place.Query)),
		keyed("body", optional(g.Place.Body)),
	)))
}

// SuggestContextGrant returns the element of a policy's grants that lets a tool be filled
// in with a context value.
func SuggestContextGrant(tool, name string) string {
	return suggestGrant(tool, "context", listOf(textOf(name)))
}

// SuggestEnvGrant returns the element of a policy's grants that gives a tool an environment
// variable. VALUE in it is for the operator to replace.
func SuggestEnvGrant(tool, name string) string {
	return suggestGrant(tool, "env", objectOf(keyed(name, textOf("VALUE"))))
}

// SuggestCallManifest returns the line of a manifest that asks to call a tool.
func SuggestCallManifest(called string) string {
	return suggestPermission("tools", textOf(called))
}

// SuggestCallGrant returns the element of a policy's grants that lets a tool call another.
func SuggestCallGrant(tool, called string) string {
	return suggestGrant(tool, "calls", listOf(textOf(called)))
}

func suggestPermission(key string, element *node) string {
	permissions := objectOf(keyed(key, listOf(element)))
	r := &reader{subject: manifestSubject}
	r.permissions(permissions, "permissions", &Permissions{})
	text, plain := permissions.flow()
	if len(r.problems) > 0 || !plain {
		return ""
	}
	return "permissions: " + text
}

func suggestGrant(tool, key string, given *node) string {
	grant := objectOf(keyed("tools", listOf(textOf(tool))), keyed(key, given))
	r := &reader{subject: policySubject}
	r.grant(grant, "grants[0]")
	text, plain := grant.flow()
	if len(r.problems) > 0 || !plain || !toolName.MatchString(tool) {
		return ""
	}
	return "- " + text
}

// requestNode writes a network permission without its defaults.
func requestNode(p NetworkPermission) *node {
	standard := NetworkPermission{}.complete()
	p = p.complete()
	return objectOf(
		keyed("host", textOf(p.Host)),
		keyed("ports", portsOf(p.Ports)),
		keyed("methods", textsUnless(p.Methods, standard.Methods)),
		keyed("schemes", textsUnless(p.Schemes, standard.Schemes)),
		keyed("paths", textsUnless(p.Paths, standard.Paths)),
	)
}

// portsOf returns nil, which stands for no member, for no ports.
func portsOf(ports []int) *node {
	if len(ports) == 0 {
		return nil
	}
	n := listOf()
	for _, port := range ports {
		n.elements = append(n.elements, &node{kind: numberNode, text: strconv.Itoa(port)})
	}
	return n
}

// textsUnless returns nil, which stands for no member, for what is standard.
func textsUnless(texts, standard []string) *node {
	if slices.Equal(texts, standard) {
		return nil
	}
	n := listOf()
	for _, text := range texts {
		n.elements = append(n.elements, textOf(text))
	}
	return n
}

func accessNode(access Access) *node {
	if access == "" {
		access = Read
	}
	return textOf(string(access))
}

// optional returns nil, which stands for no member, for the empty text.
func optional(text string) *node {
	if text == "" {
		return nil
	}
	return textOf(text)
}
