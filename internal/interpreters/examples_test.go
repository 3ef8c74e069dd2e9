package interpreters

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// TestExamples calls the tools of examples/scripts. Those that ask an API ask a server here instead.
func TestExamples(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("symbols") != "USD" {
			http.Error(w, "no such currency", http.StatusNotFound)
			return
		}
		fmt.Fprintf(w, `{"base": %q, "date": "2026-11-20", "rates": {"USD": 1.0825}}`, r.URL.Query().Get("base"))
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	dir := t.TempDir()
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "scripts", "*.*"))
	require.NoError(t, err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		text := strings.ReplaceAll(string(content), "https://api.frankfurter.dev", server.URL)
		text = strings.ReplaceAll(text, "host: api.frankfurter.dev,", "host: 127.0.0.1, schemes: [http], ports: ["+strings.TrimPrefix(host, "127.0.0.1:")+"],")
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(file)), []byte(text), 0o600))
	}
	policy, err := manifests.ParsePolicy("caisson.yaml", fmt.Appendf(nil,
		"schema: caisson-config/v1\ngrants: [{tools: [\"*\"], network: [{host: 127.0.0.1, schemes: [http], ports: [%s], addresses: [127.0.0.0/8]}]}]\n", strings.TrimPrefix(host, "127.0.0.1:")))
	require.NoError(t, err)
	r := newRuntime(t)
	loaded := func(name string, grants manifests.Grants) *runtime.Tool {
		m, err := manifests.Load(filepath.Join(dir, name+".tool.yaml"))
		require.NoError(t, err)
		l, err := r.Load(t.Context(), m, grants)
		require.NoError(t, err)
		return l
	}
	for _, language := range []string{"py", "js"} {
		csv := loaded("sum_csv_"+language, manifests.Grants{})
		outcome := call(t, csv, `{"csv": "region,sales\nnorth,1.5\n\"the \"\"deep\"\", south\",2\nnorth,3\n", "group": "region", "value": "sales"}`)
		assert.JSONEq(t, `{"north": 4.5, "the \"deep\", south": 2}`, string(outcome.Result.Data), outcome.Result.Error+outcome.Log)
		assert.Empty(t, outcome.Log)
		outcome = call(t, csv, `{"csv": "region,sales\nnorth,x\n", "group": "region", "value": "sales"}`)
		assert.Contains(t, outcome.Result.Error, "'x' is no number")
		outcome = call(t, csv, `{"csv": "a,b\n", "group": "a", "value": "c"}`)
		assert.Contains(t, outcome.Result.Error, "there is no column 'c'; there are a, b")

		rate := "exchange_rate_" + language
		granted := loaded(rate, policy.For(rate, ""))
		outcome = call(t, granted, `{"base": "EUR", "to": "USD"}`)
		assert.JSONEq(t, `{"rate": 1.0825, "date": "2026-11-20"}`, string(outcome.Result.Data), outcome.Result.Error+outcome.Log)
		require.Len(t, outcome.HostCalls, 1)
		assert.True(t, outcome.HostCalls[0].Allowed)
		outcome = call(t, granted, `{"base": "EUR", "to": "QQQ"}`)
		assert.Contains(t, outcome.Result.Error, "the service answered with status 404; are EUR and QQQ currencies?")
		outcome = call(t, loaded(rate, manifests.Grants{}), `{"base": "EUR", "to": "USD"}`)
		assert.Equal(t, tool.Denied, outcome.Result.Kind, "without the grant")
		assert.Contains(t, outcome.Result.Error, "denied: network http://127.0.0.1:")
	}
}
