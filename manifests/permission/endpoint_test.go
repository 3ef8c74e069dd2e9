package permission_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests/permission"
)

func TestParseEndpoint(t *testing.T) {
	for text, want := range map[string]string{"127.0.0.1:8443": "127.0.0.1:8443", "[::1]:80": "[::1]:80", "[::ffff:127.0.0.1]:80": "127.0.0.1:80"} {
		endpoint, err := permission.ParseEndpoint(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, endpoint.String())
	}
	for _, text := range []string{"", "127.0.0.1", "127.0.0.1:0", "localhost:80", "[fe80::1%eth0]:80", "::1:80", "127.1:80", "127.0.0.1:65536"} {
		_, err := permission.ParseEndpoint(text)
		require.ErrorIs(t, err, permission.ErrInvalid, text)
	}
}
