package tools_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// web is an HTTPS server of this test's that answers for the hosts that are granted.
type web struct {
	*httptest.Server
	authorities string // the file with its certificate
}

// serve starts a server with a certificate for the hosts.
func serve(t testing.TB, handler http.Handler, hosts ...string) *web {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: hosts,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	w := &web{Server: httptest.NewUnstartedServer(handler), authorities: filepath.Join(t.TempDir(), "authorities.pem")}
	require.NoError(t, os.WriteFile(w.authorities, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), 0o600))
	w.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}}
	w.EnableHTTP2 = true
	w.StartTLS()
	t.Cleanup(w.Close)
	return w
}

// grant lets a tool reach the server under the host's name.
func (w *web) grant(host, method string) manifests.NetworkGrant {
	return manifests.NetworkGrant{
		NetworkPermission: manifests.NetworkPermission{Host: host, Methods: []string{method}, Schemes: []string{"https"}, Paths: []string{"/"}},
		Connect:           w.Listener.Addr().String(), Authorities: w.authorities,
	}
}

// caller calls one tool as a model does.
type caller struct {
	t    testing.TB
	name string
	run  *executor.Executor
}

func load(t testing.TB, name string, grants manifests.Grants) *caller {
	t.Helper()
	found := compiled(t)
	at := slices.IndexFunc(found, func(m *manifests.Manifest) bool { return m.Name == name })
	require.GreaterOrEqual(t, at, 0)
	loaded, err := newRuntime(t, runtime.Options{}).Load(t.Context(), found[at], grants)
	require.NoError(t, err)
	tools := registry.New()
	require.NoError(t, tools.Register("wasm-tools", loaded))
	// Each call is to reach the server, and its result to be seen in whole.
	run, err := executor.New(tools, executor.Options{Reuse: executor.Reuse{Scope: executor.ReuseNone}, Output: executor.Output{Unlimited: true}})
	require.NoError(t, err)
	return &caller{t, name, run}
}

func (c *caller) call(arguments string) tool.Record {
	c.t.Helper()
	report, err := c.run.Execute(c.t.Context(), executor.Batch{
		Calls: []tool.Call{{ID: "test", Type: "function", Function: tool.Function{Name: c.name, Arguments: arguments}}},
	})
	require.NoError(c.t, err)
	return report.Records[0]
}

func page(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	io.WriteString(w, body)
}

func TestFetchPageThroughTheNetwork(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("www.example.com/", func(w http.ResponseWriter, r *http.Request) {
		page(w, "<title>Home</title><h1>Wärme</h1><p>asked with "+r.Method+" by "+r.UserAgent()+"<p hidden>secret</p><a href=next>Next</a>")
	})
	mux.Handle("www.example.com/moved", http.RedirectHandler("https://other.example.com/there", http.StatusFound))
	mux.Handle("www.example.com/away", http.RedirectHandler("https://elsewhere.example/", http.StatusFound))
	mux.Handle("www.example.com/missing", http.NotFoundHandler())
	mux.HandleFunc("www.example.com/endless", func(w http.ResponseWriter, _ *http.Request) {
		page(w, "<title>Endless</title>")
		for range 12 << 20 / 1024 {
			if _, err := io.WriteString(w, strings.Repeat("lorem ipsum dolo", 64)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("other.example.com/there", func(w http.ResponseWriter, _ *http.Request) { page(w, "<p>arrived") })
	server := serve(t, mux, "www.example.com", "other.example.com")
	c := load(t, "fetch_page", manifests.Grants{Network: []manifests.NetworkGrant{server.grant("www.example.com", "GET"), server.grant("other.example.com", "GET")}})

	record := c.call(`{"url":"https://www.example.com/?q=1"}`)
	require.True(t, record.Result.Success, record.Result.Error)
	assert.Equal(t, "Home\nhttps://www.example.com/?q=1\n\n# Wärme\n\nasked with GET by Mozilla/5.0 (compatible; Caisson-Web/1.0)\n\nNext", record.Result.Output)
	require.Len(t, record.HostCalls, 1)
	assert.Equal(t, "GET https://www.example.com/", record.HostCalls[0].Target)
	assert.Empty(t, record.Denials)

	record = c.call(`{"url":"https://www.example.com/","extract_type":"links"}`)
	assert.Contains(t, record.Result.Output, "- Next <https://www.example.com/next>")

	record = c.call(`{"url":"https://www.example.com/moved"}`)
	assert.Equal(t, "https://other.example.com/there\n\narrived", record.Result.Output, record.Result.Error)

	record = c.call(`{"url":"https://www.example.com/missing"}`)
	assert.Equal(t, tool.ToolFailed, record.Result.Kind)
	assert.Equal(t, "https://www.example.com/missing: the server answered 404 Not Found; check the address", record.Result.Error)

	record = c.call(`{"url":"https://www.example.com/endless"}`)
	require.True(t, record.Result.Success, record.Result.Error)
	assert.Contains(t, record.Result.Output, "[note: the page is larger than this call may fetch: its end is missing]")
	assert.Contains(t, record.Result.Output, "[cut: go on at offset 20000]")

	for _, url := range []string{"https://elsewhere.example/", "https://www.example.com/away", "http://www.example.com/", "https://www.example.com:8443/", "https://127.0.0.1/"} {
		record = c.call(`{"url":"` + url + `"}`)
		assert.Equal(t, tool.Denied, record.Result.Kind, "%s: %s", url, record.Result.Error)
		require.Len(t, record.Denials, 1, url)
		assert.Equal(t, "network", record.Denials[0].Permission)
		assert.NotContains(t, record.Result.Error, server.Listener.Addr().String())
	}
}

// TestCrawlBatchAsksSideBySide: the server answers no request before all nine have arrived.
func TestCrawlBatchAsksSideBySide(t *testing.T) {
	var together sync.WaitGroup
	together.Add(9)
	mux := http.NewServeMux()
	mux.HandleFunc("/page/{number}", func(w http.ResponseWriter, r *http.Request) {
		together.Done()
		all := make(chan struct{})
		go func() { together.Wait(); close(all) }()
		select {
		case <-all:
			page(w, "<h1>Page "+r.PathValue("number")+"</h1>")
		case <-r.Context().Done():
		}
	})
	server := serve(t, mux, "www.example.com")
	c := load(t, "crawl_batch", manifests.Grants{Network: []manifests.NetworkGrant{server.grant("www.example.com", "GET")}})
	var urls []string
	for i := range 9 {
		urls = append(urls, fmt.Sprintf("https://www.example.com/page/%d", i))
	}
	urls = slices.Insert(urls, 4, "https://elsewhere.example/")
	arguments, err := json.Marshal(map[string]any{"urls": urls})
	require.NoError(t, err)

	record := c.call(string(arguments))
	require.True(t, record.Result.Success, record.Result.Error)
	for i := range 9 {
		assert.Contains(t, record.Result.Output, fmt.Sprintf("# Page %d", i))
	}
	assert.Contains(t, record.Result.Output, "=== 5 of 10: https://elsewhere.example/\n[failed: denied: network")
	require.Len(t, record.Denials, 1)
	assert.Len(t, record.HostCalls, 10)
	var data struct {
		Succeeded, Failed int
	}
	require.NoError(t, json.Unmarshal(record.Result.Data, &data))
	assert.Equal(t, 9, data.Succeeded)
	assert.Equal(t, 1, data.Failed)
}

const key = "test-key-0123456789abcdef" // no service knows it

// secret grants the test's key from a file.
func secret(t *testing.T, name, host string) manifests.SecretGrant {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, []byte(key+"\n"), 0o600))
	return manifests.SecretGrant{Name: name, From: manifests.SecretSource{File: file}, Host: host}
}

func TestWebSearchThroughTheNetwork(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET api.search.brave.com/res/v1/web/search", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Subscription-Token") != key {
			http.Error(w, "{}", http.StatusUnauthorized)
			return
		}
		// A server that tells the key must not tell it to the model.
		fmt.Fprintf(w, `{"type":"search","web":{"results":[{"title":"Brave: %s","url":"https://a.example/","description":"about %s"}]}}`, r.URL.Query().Get("q"), key)
	})
	mux.HandleFunc("POST api.tavily.com/search", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			http.Error(w, "{}", http.StatusUnauthorized)
			return
		}
		io.WriteString(w, `{"results":[{"title":"Tavily","url":"https://b.example/","content":"b"}]}`)
	})
	mux.HandleFunc("GET searx.example/searxng/search", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("X-Subscription-Token") != "" {
			http.Error(w, "keys of others", http.StatusBadRequest)
			return
		}
		io.WriteString(w, `{"results":[{"title":"SearXNG","url":"https://c.example/","content":"c"}]}`)
	})
	server := serve(t, mux, "api.search.brave.com", "api.tavily.com", "searx.example")
	hosts := []manifests.NetworkGrant{
		server.grant("api.search.brave.com", "GET"), server.grant("api.tavily.com", "POST"), server.grant("searx.example", "GET"),
	}
	brave, tavily := secret(t, "BRAVE_API_KEY", "api.search.brave.com"), secret(t, "TAVILY_API_KEY", "api.tavily.com")
	instance := manifests.EnvGrant{Name: "SEARXNG_URL", Value: "https://searx.example/searxng"}
	chosen := func(name string) manifests.EnvGrant {
		return manifests.EnvGrant{Name: "WEB_SEARCH_PROVIDER", Value: name}
	}
	for _, test := range []struct {
		name   string
		grants manifests.Grants
		want   string
	}{
		{"brave comes first", manifests.Grants{Secrets: []manifests.SecretGrant{brave, tavily}, Env: []manifests.EnvGrant{instance}},
			"1. Brave: wärme & co\n   https://a.example/\n   about [secret BRAVE_API_KEY]"},
		{"then tavily", manifests.Grants{Secrets: []manifests.SecretGrant{tavily}, Env: []manifests.EnvGrant{instance}}, "1. Tavily\n   https://b.example/\n   b"},
		{"then searxng", manifests.Grants{Env: []manifests.EnvGrant{instance}}, "1. SearXNG\n   https://c.example/\n   c"},
		{"the operator chooses", manifests.Grants{Secrets: []manifests.SecretGrant{brave, tavily}, Env: []manifests.EnvGrant{instance, chosen("searxng")}}, "1. SearXNG\n   https://c.example/\n   c"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.grants.Network = hosts
			record := load(t, "web_search", test.grants).call(`{"query":"wärme & co"}`)
			require.True(t, record.Result.Success, record.Result.Error)
			assert.Equal(t, test.want, record.Result.Output)
			all, err := json.Marshal(record)
			require.NoError(t, err)
			assert.NotContains(t, string(all), key)
		})
	}

	record := load(t, "web_search", manifests.Grants{Network: hosts}).call(`{"query":"x"}`)
	assert.False(t, record.Result.Success)
	assert.Contains(t, record.Result.Error, "needs the setting BRAVE_API_KEY or TAVILY_API_KEY or SEARXNG_URL")

	record = load(t, "web_search", manifests.Grants{Secrets: []manifests.SecretGrant{tavily}}).call(`{"query":"x"}`)
	assert.Equal(t, tool.Denied, record.Result.Kind, record.Result.Error)
	assert.Contains(t, record.Result.Error, "https://api.tavily.com/search")
}

// TestPagesOnTheirOwnPorts: the operator decides which ports pages may come from.
func TestPagesOnTheirOwnPorts(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { page(w, "<p>here") }))
	t.Cleanup(site.Close)
	granted := manifests.NetworkGrant{NetworkPermission: manifests.NetworkPermission{
		Host: "127.0.0.1", Ports: []int{site.Listener.Addr().(*net.TCPAddr).Port}, Schemes: []string{"http"}, Methods: []string{"GET"}, Paths: []string{"/"},
	}}
	for name, arguments := range map[string]string{"fetch_page": `{"url":"` + site.URL + `/"}`, "crawl_batch": `{"urls":["` + site.URL + `/"]}`} {
		record := load(t, name, manifests.Grants{Network: []manifests.NetworkGrant{granted}}).call(arguments)
		assert.True(t, record.Result.Success, record.Result.Error)
		assert.Contains(t, record.Result.Output, "here")
		granted := granted
		granted.Ports = nil
		record = load(t, name, manifests.Grants{Network: []manifests.NetworkGrant{granted}}).call(arguments)
		assert.Equal(t, tool.Denied, record.Result.Kind, record.Result.Error)
	}
}

// TestSearXNGOnItsOwnPort: an instance may be anywhere, and the operator grants its host and its port.
func TestSearXNGOnItsOwnPort(t *testing.T) {
	instance := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/search" || r.URL.Query().Get("format") != "json" {
			http.NotFound(w, r)
			return
		}
		io.WriteString(w, `{"results":[{"title":"SearXNG","url":"https://c.example/","content":"c"}]}`)
	}))
	t.Cleanup(instance.Close)
	address := instance.Listener.Addr().(*net.TCPAddr)
	for _, test := range []struct {
		name  string
		ports []int
		want  string
	}{
		{"granted", []int{address.Port}, ""},
		{"the usual port", nil, fmt.Sprintf("covers 127.0.0.1, but not http on port %d", address.Port)},
		{"another port", []int{address.Port + 1}, fmt.Sprintf("covers 127.0.0.1, but not http on port %d", address.Port)},
	} {
		t.Run(test.name, func(t *testing.T) {
			record := load(t, "web_search", manifests.Grants{
				Env: []manifests.EnvGrant{{Name: "SEARXNG_URL", Value: instance.URL + "/"}},
				Network: []manifests.NetworkGrant{{NetworkPermission: manifests.NetworkPermission{
					Host: "127.0.0.1", Ports: test.ports, Schemes: []string{"http"}, Methods: []string{"GET"}, Paths: []string{"/"},
				}}},
			}).call(`{"query":"x"}`)
			if test.want == "" {
				require.True(t, record.Result.Success, record.Result.Error)
				assert.Equal(t, "1. SearXNG\n   https://c.example/\n   c", record.Result.Output)
				return
			}
			assert.Equal(t, tool.Denied, record.Result.Kind)
			assert.Contains(t, record.Result.Error, test.want)
			denial := record.Denials[len(record.Denials)-1] // the denials before it are of keys for which it asked
			assert.Empty(t, denial.Allow.Manifest, "the manifest asks for every port")
			assert.Contains(t, string(denial.Allow.Grant), fmt.Sprintf(`"ports":[%d]`, address.Port))
		})
	}
}

func TestGetWeatherThroughTheNetwork(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET geocoding-api.open-meteo.com/v1/search", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("name") != "Köln" {
			io.WriteString(w, `{"generationtime_ms":0.1}`)
			return
		}
		io.WriteString(w, `{"results":[{"name":"Cologne","latitude":50.93,"longitude":6.95,"country":"Germany","country_code":"DE","admin1":"North Rhine-Westphalia","population":963395}]}`)
	})
	mux.HandleFunc("GET api.open-meteo.com/v1/forecast", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"timezone":"Europe/Berlin","current_units":{"temperature_2m":"°C","wind_speed_10m":"km/h","precipitation":"mm"},
			"current":{"time":"2026-03-01T12:00","weather_code":2,"temperature_2m":8.1},
			"daily":{"time":["2026-03-01"],"weather_code":[95],"temperature_2m_max":[9],"temperature_2m_min":[2]}}`)
	})
	server := serve(t, mux, "geocoding-api.open-meteo.com", "api.open-meteo.com")
	c := load(t, "get_weather", manifests.Grants{Network: []manifests.NetworkGrant{
		server.grant("geocoding-api.open-meteo.com", "GET"), server.grant("api.open-meteo.com", "GET"),
	}})

	record := c.call(`{"city":"Köln","days":1}`)
	require.True(t, record.Result.Success, record.Result.Error)
	assert.Equal(t, "Cologne, North Rhine-Westphalia, Germany (times in Europe/Berlin)\nnow (2026-03-01T12:00): partly cloudy, 8.1°C\n2026-03-01: thunderstorm, 2 to 9°C", record.Result.Output)
	assert.Len(t, record.HostCalls, 2)

	record = c.call(`{"city":"Nowhere"}`)
	assert.Equal(t, tool.ToolFailed, record.Result.Kind)
	assert.Contains(t, record.Result.Error, `no place is called "Nowhere"`)
}
