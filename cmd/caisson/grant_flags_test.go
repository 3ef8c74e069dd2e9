package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/internal/view"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

func TestParseNetwork(t *testing.T) {
	both := []string{"https", "http"}
	for text, want := range map[string]manifests.NetworkPermission{
		"api.example.com":              {Host: "api.example.com", Schemes: both},
		"API.Example.com:8443":         {Host: "api.example.com", Ports: []int{8443}, Schemes: both},
		"https://api.example.com":      {Host: "api.example.com", Schemes: []string{"https"}},
		"http://localhost:8080":        {Host: "localhost", Ports: []int{8080}, Schemes: []string{"http"}},
		"*.example.com":                {Host: "*.example.com", Schemes: both},
		"*":                            {Host: "*", Schemes: both},
		"*:443":                        {Host: "*", Ports: []int{443}, Schemes: both},
		"10.0.0.1:1":                   {Host: "10.0.0.1", Ports: []int{1}, Schemes: both},
		"[::1]":                        {Host: "::1", Schemes: both},
		"[::ffff:10.0.0.1]:1":          {Host: "10.0.0.1", Ports: []int{1}, Schemes: both},
		"http://[2001:DB8:0::1]:65535": {Host: "2001:db8::1", Ports: []int{65535}, Schemes: []string{"http"}},
	} {
		want.Methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
		want.Paths = []string{"/"}
		got, err := parseNetwork(text)
		require.NoError(t, err, text)
		assert.Equal(t, manifests.NetworkGrant{Binding: manifests.Binding{Origin: "--allow-net " + text}, NetworkPermission: want}, got)
	}
	for text, message := range map[string]string{
		"":                       "is empty",
		"https://":               "is empty",
		"HTTPS://a.example":      "the scheme",
		"ftp://a.example":        "the scheme",
		"://a.example":           "the scheme",
		"a.example/":             "\"a.example/\" has a path, but a grant is for a host; write a.example",
		"a.example/v1":           "has a path, but a grant is for a host; write a.example;",
		"https://a.example/v1":   "write https://a.example;",
		"a.example:80/v1":        "has a path",
		"1.2.3.0/24":             `is a range of addresses, but a grant is for a host; name the host, and write the addresses that it may have into a policy: network: [{host: HOST, addresses: [1.2.3.0/24]}]`,
		"user@a.example":         "not a host alone",
		"user:pw@a.example":      "the port",
		"a.example:":             "no port after the colon",
		"a.example:0":            "the port",
		"a.example:65536":        "the port",
		"a.example:080":          "the port",
		"a.example:+80":          "the port",
		"a.example: 80":          "the port",
		"a.example:80:80":        "the port",
		":80":                    "is empty",
		"::1":                    "must be in brackets: [::1]",
		"::1:80":                 "must be in brackets",
		"[::1":                   "no IPv6 address in brackets",
		"[::1]80":                "no port after the brackets",
		"[::1]:":                 "no port after the brackets",
		"[::1]]":                 "no port after the brackets",
		"[10.0.0.1]":             "no IPv6 address in brackets",
		"[a.example]":            "no IPv6 address in brackets",
		"[]":                     "no IPv6 address in brackets",
		"[fe80::1%eth0]":         "has a zone",
		"a.example.":             "not a host name",
		"127.1":                  "unusual form",
		"0x7f000001":             "unusual form",
		"2130706433":             "unusual form",
		"*.10.0.0.1":             "no names below it",
		"a*.example":             "has a *",
		"bücher.example":         "xn--",
		"\u212a.example":         "xn--", // its lower case is k
		"a b":                    "not a host alone",
		" a.example":             "not a host alone",
		"a.example\n":            "not a host name",
		"a.example,b.example":    "not a host name",
		strings.Repeat("a", 300): "longer than 253",
	} {
		got, err := parseNetwork(text)
		assert.Zero(t, got, text)
		assert.ErrorContains(t, err, message, text)
		assert.ErrorContains(t, err, "want [SCHEME://]HOST[:PORT]", text)
	}
}

func TestParseSecret(t *testing.T) {
	for text, want := range map[string]manifests.SecretGrant{
		"API_KEY=env:TAVILY_KEY@api.example.com": {Name: "API_KEY", From: manifests.SecretSource{Env: "TAVILY_KEY"}, Host: "api.example.com"},
		"A=env:_a1@http://LOCALHOST:8080":        {Name: "A", From: manifests.SecretSource{Env: "_a1"}, Host: "localhost", Ports: []int{8080}, Schemes: []string{"http"}},
		"A=file:/run/secrets/a@https://[::1]":    {Name: "A", From: manifests.SecretSource{File: "/run/secrets/a"}, Host: "::1", Schemes: []string{"https"}},
		"A=file:./a b@c=d:e@10.0.0.1:443":        {Name: "A", From: manifests.SecretSource{File: "./a b@c=d:e"}, Host: "10.0.0.1", Ports: []int{443}},
	} {
		got, err := parseSecret(text)
		require.NoError(t, err, text)
		want.Origin = "--secret " + want.Name + "=…" + text[strings.LastIndex(text, "@"):]
		assert.Equal(t, want, got)
	}
	for text, message := range map[string]string{
		"":                                 "no =",
		"A":                                "no =",
		"a=env:A@a.example":                "upper-case",
		"=env:A@a.example":                 "upper-case",
		"A B=env:A@a.example":              "upper-case",
		"A=env:A":                          "no @",
		"A=sk-topsecret":                   "no @",
		"A=sk-topsecret@a.example":         "must begin with env: or with file:",
		"A=ENV:topsecret@a.example":        "must begin with env: or with file:",
		"A=env:@a.example":                 "not the name of a variable",
		"A=env:sk-topsecret@a.example":     "not the name of a variable",
		"A=env@a.example":                  "not the name of a variable",
		"A=file:@a.example":                "not a path",
		"A=file:topsecret\x00@a.example":   "not a path",
		"A=file:topsecret\u202e@a.example": "not a path",
		"A=env:A@":                         "is empty",
		"A=env:A@*":                        "stands for many hosts",
		"A=env:A@*.a.example":              "stands for many hosts",
		"A=env:A@ftp://a.example":          "the scheme",
		"A=env:A@::1":                      "must be in brackets",
		"A=env:A@a.example:":               "no port",
		"A=env:A@a.example/v1":             "has a path, but a grant is for a host; write a.example;",
	} {
		got, err := parseSecret(text)
		assert.Zero(t, got, text)
		assert.ErrorContains(t, err, message, text)
		assert.ErrorContains(t, err, "want NAME=env:VARIABLE@HOST", text)
		assert.ErrorAs(t, err, new(secretError), text)
		assert.NotContains(t, err.Error(), "topsecret")
	}
}

// TestParseNames: --allow-call and --approve-tool take names, and --ask also globs.
func TestParseNames(t *testing.T) {
	names := []string{"web_search", "a-b_C9", "-", strings.Repeat("a", 64)}
	globs := []string{"*", "file_*", "file_?", "[a-c]?"}
	neither := []string{"", "a b", "a,b", "a/b", "a\n", "é", "[", "[]", "{a,b}", strings.Repeat("a", 129)}
	for _, text := range slices.Concat(names, globs, neither) {
		call, callErr := parseCall(text)
		approval, approvalErr := parseApproval(text)
		if slices.Contains(names, text) {
			require.NoError(t, errors.Join(callErr, approvalErr), text)
			assert.Equal(t, manifests.NameGrant{Binding: manifests.Binding{Origin: "--allow-call " + text}, Name: text}, call)
			assert.Equal(t, manifests.PolicyApproval{Binding: manifests.Binding{Origin: "--approve-tool " + text}, Tools: []string{text}}, approval)
		} else {
			assert.ErrorContains(t, callErr, "want NAME", text)
			assert.ErrorContains(t, approvalErr, "want NAME", text)
		}
		ask, err := parseAsk(text)
		if slices.Contains(neither, text) {
			assert.ErrorContains(t, err, "want GLOB", text)
			continue
		}
		require.NoError(t, err, text)
		assert.Equal(t, manifests.PolicyAsk{Origin: "--ask " + text, Tool: text}, ask)
	}
}

// TestFlagsAreAPolicyOfTheirOwn: flags about approval apply like those of a policy file.
func TestFlagsAreAPolicyOfTheirOwn(t *testing.T) {
	ask := noerr.Get(parseAsk("file_*"))(t)
	approval := noerr.Get(parseApproval("file_delete"))(t)
	flags := &manifests.Policy{Ask: []manifests.PolicyAsk{ask}, Approve: []manifests.PolicyApproval{approval}}
	given := flags.For("file_delete", "wasm-tools")
	assert.Equal(t, []string{"--ask file_*"}, given.Ask)
	assert.Equal(t, []manifests.Binding{manifests.Binding{Origin: "--approve-tool file_delete"}}, given.Approved)
	assert.Zero(t, flags.For("web_search", "wasm-tools"))
}

func FuzzNetworkFlag(f *testing.F) {
	for _, seed := range []string{"", "a.example", "https://*.a.example:443", "http://[::1]:80", "[::ffff:127.0.0.1]", "::1", "127.1:80", "*", "a:b@c", "A.é:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseNetwork(text)
		if err != nil {
			require.Zero(t, got)
			return
		}
		assert.Equal(t, "--allow-net "+text, got.Origin)
		assert.Equal(t, strings.ToLower(got.Host), got.Host)
		scheme := ""
		if len(got.Schemes) == 1 {
			scheme = got.Schemes[0] + "://"
		}
		again := noerr.Get(parseNetwork(scheme + flagHost(got.Host, got.Ports)))(t)
		again.Origin = got.Origin
		assert.Equal(t, got, again)
		// It can be shown as a rule, and that as a flag again.
		rule := manifests.Grants{Network: []manifests.NetworkGrant{got}}.Rule("a")
		require.NotNil(t, rule)
		require.NotEmpty(t, view.RemedyOf(tool.Allow{Grant: rule}, "").Flags)
	})
}

func FuzzSecretFlag(f *testing.F) {
	for _, seed := range []string{"", "A=env:B@a.example", "A=file:./a@b@http://[::1]:80", "A=env:B@*", "A=file:@a", "A=env:B@a:0", "A=file:\x00@a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseSecret(text)
		if err != nil {
			require.Zero(t, got)
			return
		}
		assert.Regexp(t, `^[A-Z][A-Z0-9_]*$`, got.Name)
		assert.NotContains(t, got.Host, "*")
		assert.Equal(t, strings.ToLower(got.Host), got.Host)
		assert.NotEqual(t, got.From.Env == "", got.From.File == "")
		from := "env:" + got.From.Env
		if got.From.File != "" {
			from = "file:" + got.From.File
			assert.NotContains(t, got.Origin, "file:")
		}
		scheme := ""
		if len(got.Schemes) == 1 {
			scheme = got.Schemes[0] + "://"
		}
		again := noerr.Get(parseSecret(got.Name + "=" + from + "@" + scheme + flagHost(got.Host, got.Ports)))(t)
		again.Origin = got.Origin
		assert.Equal(t, got, again)
	})
}

func FuzzApprovalFlags(f *testing.F) {
	for _, seed := range []string{"", "file_delete", "file_*", "*", "[a-c]?", "[", "a/b", "\x00", "é", "a b", "[^]a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		approval, err := parseApproval(text)
		ask, askErr := parseAsk(text)
		if err == nil {
			require.NoError(t, askErr, "every name is a glob")
			flags := &manifests.Policy{Approve: []manifests.PolicyApproval{approval}}
			require.Len(t, flags.For(text, "").Approved, 1)
			require.Empty(t, flags.For(strings.ToUpper(text)+"x", "").Approved)
		} else {
			require.Zero(t, approval)
		}
		if askErr != nil {
			require.Zero(t, ask)
			return
		}
		assert.Equal(t, text, ask.Tool)
	})
}

// flagHost writes a host and its ports as flags have them.
func flagHost(host string, ports []int) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	for _, port := range ports {
		host += fmt.Sprintf(":%d", port)
	}
	return host
}

// TestFlagsAreRead: the command line accepts the flags that are printed for a rule.
func TestFlagsAreRead(t *testing.T) {
	network := manifests.NetworkPermission{Host: "*.example.com", Ports: []int{80, 8443}, Methods: []string{"POST"}, Schemes: []string{"https", "http"}}
	rule := manifests.Grants{Network: []manifests.NetworkGrant{{NetworkPermission: network}}, Calls: []manifests.NameGrant{{Name: "b"}},
		Secrets: []manifests.SecretGrant{{Name: "K", From: manifests.SecretSource{Env: "K"}, Host: "::1"}},
		Files:   []manifests.FileGrant{{Path: permission.NewGuestPath("/a b"), Access: manifests.AccessReadWrite}},
		Context: manifests.GrantContext("p"),
	}.Rule("a")
	var o options
	command := &cobra.Command{}
	o.policyFlags(command)
	o.grantFlags(command)
	flags := strings.ReplaceAll(view.RemedyOf(tool.Allow{Grant: rule}, "").Flags, "HOSTDIR", t.TempDir())
	require.NotEmpty(t, flags)
	for _, flag := range strings.Split(flags, "--")[1:] {
		name, value, found := strings.Cut(strings.TrimSpace(flag), " ")
		require.True(t, found, flag)
		require.NoError(t, command.Flags().Set(name, strings.Trim(value, "'")), flag)
	}
	assert.Equal(t, "/a b", o.mounts[0].Path.String())
	assert.Equal(t, manifests.AccessReadWrite, o.mounts[0].Access)
	assert.Equal(t, "b", o.calls[0].Name)
	assert.Equal(t, "::1", o.secrets[0].Host)
	assert.Equal(t, "p", o.context[0].key)
	given := map[string]bool{}
	for _, g := range o.networks {
		assert.Equal(t, network.Host, g.Host)
		assert.Equal(t, view.FlagMethods, g.Methods)
		for _, scheme := range g.Schemes {
			for _, port := range g.Ports {
				given[fmt.Sprint(scheme, port)] = true
			}
		}
	}
	assert.Equal(t, map[string]bool{"https80": true, "https8443": true, "http80": true, "http8443": true}, given)
}
