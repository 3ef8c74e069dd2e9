package caisson_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/cases"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
)

// TestManual follows docs/manifest.md in an empty folder, and runs the tests in the manifests there.
// Package internal/manual has the rest of the page: its tables, and examples that are only read.
func TestManual(t *testing.T) {
	if goruntime.GOOS == "windows" {
		return // the page's commands need a POSIX shell
	}
	var steps []block
	for _, b := range blocksIn(t, filepath.Join("docs", "manifest.md")) {
		if b.info != "yaml" {
			steps = append(steps, b)
		}
	}
	dir := t.TempDir()
	assert.Equal(t, 16, follow(t, dir, steps, withCaisson(t)))

	_, cache := noerr.Get2(guests.CompiledCode())(t)
	rt := noerr.Get(runtime.New(t.Context(), runtime.Options{CacheDir: cache}))(t)
	t.Cleanup(func() { assert.NoError(t, rt.Close(context.Background())) })
	found := noerr.Get(registry.Directory(dir, nil).Manifests(t.Context()))(t)
	run := 0
	for _, f := range found {
		require.Nil(t, f.Broken)
		for _, test := range f.Manifest.Tests {
			assert.NoError(t, cases.Run(t.Context(), rt, f.Manifest, test, t.TempDir()), test.Name)
			run++
		}
	}
	assert.Equal(t, 3, run)
}

// TestManualHasTheLimitsOfTheRuntime: a tool gets the defaults of the manual's table if it requests
// nothing, and what the table says of the standard profile if it requests more.
func TestManualHasTheLimitsOfTheRuntime(t *testing.T) {
	var published struct {
		Properties struct {
			Limits struct {
				Properties map[string]struct {
					Default     json.RawMessage
					Description string
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(manifests.JSONSchema(), &published))
	rt := noerr.Get(runtime.New(t.Context(), runtime.Options{}))(t)
	t.Cleanup(func() { assert.NoError(t, rt.Close(context.Background())) })
	limits := func(limits string) (written, effective runtime.Limits) {
		m := noerr.Get(manifests.Parse("tool.yaml", []byte("schema: caisson/v1\nname: a\ndescription: b\nmodule: {path: a.wasm}\nlimits: "+limits)))(t)
		loaded := noerr.Get(rt.Load(t.Context(), m, manifests.Grants{}))(t)
		l := m.Limits
		return runtime.Limits{
			Timeout: l.Timeout, Memory: l.Memory, Output: l.Output, Stderr: l.Stderr, OpenFiles: l.OpenFiles,
			DiskBytes: l.DiskBytes, HTTPCalls: l.HTTPCalls, HTTPBytes: l.HTTPBytes, Fuel: l.Fuel,
		}, loaded.Limits()
	}
	defaults, caps := map[string]any{}, map[string]any{}
	for key, s := range published.Properties.Limits.Properties {
		if s.Default == nil {
			continue
		}
		defaults[key] = s.Default
		_, most, found := strings.Cut(s.Description, "standard profile caps it at ")
		require.True(t, found, key)
		most = strings.TrimSuffix(most, ".")
		if s.Default[0] == '"' {
			caps[key] = most
		} else {
			caps[key] = json.RawMessage(most)
		}
	}
	require.Len(t, defaults, 8)
	asText := func(limits map[string]any) string {
		text := noerr.Get(json.Marshal(limits))(t)
		return string(text)
	}
	_, gets := limits("{}")
	says, _ := limits(asText(defaults))
	assert.Equal(t, gets, says)
	_, gets = limits("{memory: 2GiB, timeout: 24h, output: 64MiB, stderr: 16MiB, http_calls: 10000, http_bytes: 1TiB, open_files: 4096, disk_bytes: 1024TiB}")
	says, _ = limits(asText(caps))
	assert.Equal(t, gets, says)
}
