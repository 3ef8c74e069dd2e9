package manifests_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]manifests.Bytes{
		"0": 0, "512": 512, "512B": 512, "1kB": 1000, "1KB": 1000, "256KiB": 256 << 10, "10MB": 10_000_000,
		"64MiB": 64 << 20, "64 MiB": 64 << 20, "1GiB": 1 << 30, "2GB": 2_000_000_000, "1TiB": 1 << 40,
		"9223372036854775807": math.MaxInt64, "8388607TiB": 8388607 << 40, "0008": 8,
	} {
		got, err := manifests.ParseBytes(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
		assert.Equal(t, got, must(manifests.ParseBytes(got.String())), "%s does not come back from %s", text, got)
	}
	for _, text := range []string{"", " ", "B", "MiB", "-1", "+1", "1.5MiB", "1e3", "0x10", "1_000", "64mib", "64M", "1 K B", " 1", "1 ", "１", "9223372036854775808", "8388608TiB", "99999999999999999999"} {
		assert.ErrorIs(t, errOf(manifests.ParseBytes(text)), manifests.ErrQuantity, text)
	}
}

func TestBytesString(t *testing.T) {
	for want, b := range map[string]manifests.Bytes{"0B": 0, "1B": 1, "1000B": 1000, "1KiB": 1024, "1536KiB": 1536 << 10, "64MiB": 64 << 20, "3GiB": 3 << 30, "2TiB": 2 << 40} {
		assert.Equal(t, want, b.String())
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{"10s": 10 * time.Second, "5m": 5 * time.Minute, "1m30s": 90 * time.Second, "1.5s": 1500 * time.Millisecond} {
		assert.Equal(t, want, must(manifests.ParseDuration(text)))
	}
	for _, text := range []string{"", "10", "0s", "-1s", "10 s", "1d", "s", "99999999999999h"} {
		assert.ErrorIs(t, errOf(manifests.ParseDuration(text)), manifests.ErrQuantity, text)
	}
}

func FuzzParseBytes(f *testing.F) {
	for _, seed := range []string{"1", "64MiB", "-1", "9223372036854775807", "8388608TiB", "1 B"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := manifests.ParseBytes(text)
		if err != nil {
			require.ErrorIs(t, err, manifests.ErrQuantity)
			return
		}
		require.GreaterOrEqual(t, got, manifests.Bytes(0))
		require.Equal(t, got, must(manifests.ParseBytes(got.String())))
	})
}
