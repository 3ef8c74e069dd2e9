package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

func FuzzNetworkFlag(f *testing.F) {
	for _, seed := range []string{"", "a.example", "https://*.a.example:443", "http://[::1]:80", "[::ffff:127.0.0.1]", "::1", "127.1:80", "*", "a:b@c", "A.é:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseNetwork(text)
		if err != nil {
			require.ErrorIs(t, err, errGrant)
			require.Zero(t, got)
			return
		}
		assert.Equal(t, "--allow-net "+text, got.Origin)
		assert.Equal(t, strings.ToLower(got.Host), got.Host)
		scheme := ""
		if len(got.Schemes) == 1 {
			scheme = got.Schemes[0] + "://"
		}
		again, err := parseNetwork(scheme + flagHost(got.Host, got.Ports))
		require.NoError(t, err)
		again.Origin = got.Origin
		assert.Equal(t, got, again)
		// It can be shown as a rule, and as itself again.
		rule := manifests.Grant{Tools: []string{"a"}, Network: []manifests.NetworkGrant{got}}.Rule()
		require.NotNil(t, rule)
		require.NotEmpty(t, flagsFor(rule))
	})
}

func FuzzSecretFlag(f *testing.F) {
	for _, seed := range []string{"", "A=env:B@a.example", "A=file:./a@b@http://[::1]:80", "A=env:B@*", "A=file:@a", "A=env:B@a:0", "A=file:\x00@a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseSecret(text)
		if err != nil {
			require.ErrorIs(t, err, errGrant)
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
		again, err := parseSecret(got.Name + "=" + from + "@" + scheme + flagHost(got.Host, got.Ports))
		require.NoError(t, err)
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
			require.ErrorIs(t, err, errGrant)
			require.Zero(t, approval)
		}
		if askErr != nil {
			require.ErrorIs(t, askErr, errGrant)
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
