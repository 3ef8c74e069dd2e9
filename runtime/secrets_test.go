package runtime

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/tool"
)

// secretValue has bytes that each encoding writes differently.
const secretValue = "s3cr3t/+value=of_24_bytes"

// formsOf returns the forms of a secret that may be in memory, in a record or in a log.
func formsOf(value string) map[string]string {
	forms := map[string]string{
		"raw": value, "hex": hex.EncodeToString([]byte(value)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(value))),
		"query": url.QueryEscape(value), "path": url.PathEscape(value),
		"every byte": strings.ToUpper("%" + strings.Join(split(hex.EncodeToString([]byte(value))), "%")),
		"separated":  strings.Join(split(hex.EncodeToString([]byte(value))), ":"),
		"JSON":       `\u00` + strings.Join(split(hex.EncodeToString([]byte(value))), `\u00`),
	}
	// Base64 of a longer text holds the value in one of three forms, by where it begins. Take the part of each form that
	// does not depend on the text around the value:
	for name, encoding := range map[string]*base64.Encoding{"base64": base64.RawStdEncoding, "base64url": base64.RawURLEncoding} {
		for shift := range 3 {
			encoded := encoding.EncodeToString([]byte(strings.Repeat("x", shift) + value))
			forms[fmt.Sprint(name, " ", shift)] = encoded[(shift*8+5)/6 : len(encoded)-2]
		}
	}
	return forms
}

func split(hexadecimal string) []string {
	var pairs []string
	for ; hexadecimal != ""; hexadecimal = hexadecimal[2:] {
		pairs = append(pairs, hexadecimal[:2])
	}
	return pairs
}

func assertHolds(t *testing.T, holds bool, value, text, where string) {
	t.Helper()
	found := ""
	for name, form := range formsOf(value) {
		if strings.Contains(text, form) {
			found = name
		}
	}
	assert.Equal(t, holds, found != "", "%s: found in the form %q", where, found)
}

// watched records the forms in which a text is in the guest's memory: before and after host calls, when it prints, and
// as it ends.
type watched struct {
	mu     sync.Mutex
	forms  map[string]string
	found  map[string]bool
	looked int
}

func (w *watched) look(memory hostfuncs.Memory) {
	pages := uint32(0)
	for step := uint32(1 << 15); step > 0; step /= 2 {
		if _, ok := memory.View(0, (pages+step)<<16-1); ok {
			pages += step
		}
	}
	all, ok := memory.View(0, pages<<16)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.looked++; !ok {
		w.found["the memory cannot be seen"] = true
	}
	for name, form := range w.forms {
		if bytes.Contains(all, []byte(form)) {
			w.found[name] = true
		}
	}
}

// watch returns a runtime whose guests' memory is searched for the forms.
func watch(t *testing.T, options Options, forms map[string]string) (*Runtime, *watched) {
	w := &watched{forms: forms, found: map[string]bool{}}
	functions := offeredFunctions()
	for i, f := range functions {
		if f.Module == wasi.ModuleName && f.Name != "proc_exit" && f.Name != "fd_write" {
			continue
		}
		functions[i].Call = func(ctx context.Context, memory hostfuncs.Memory, stack []uint64) error {
			w.look(memory)
			err := f.Call(ctx, memory, stack)
			w.look(memory)
			return err
		}
	}
	options.CacheDir = cacheDir
	r, err := newWith(t.Context(), options, functions)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	return r, w
}

// echo sends back everything that it got, in several forms.
func echo(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("X-Api-Key") + r.URL.Query().Get("key")
	w.Header().Set("X-Echo", key)
	_, _ = io.WriteString(w, "key "+key+"; ")
	_, _ = io.WriteString(w, hex.EncodeToString([]byte(key))+" "+url.QueryEscape(key)+" "+url.PathEscape(key))
	_, _ = io.WriteString(w, " "+formsOf(key)["every byte"]+" "+formsOf(key)["separated"]+" "+formsOf(key)["JSON"])
	for _, user := range []string{"", "u:", "user:"} {
		_, _ = io.WriteString(w, " "+base64.StdEncoding.EncodeToString([]byte(user+key+"!"))+" "+base64.URLEncoding.EncodeToString([]byte(user+key)))
	}
	_, _ = io.WriteString(w, "; "+r.URL.String())
}

// TestSecretStaysWithTheHost: a tool calls an API with a secret. The API gets it, and the value
// is nowhere else, although the API sends it back in every form.
func TestSecretStaysWithTheHost(t *testing.T) {
	for place, in := range map[string]string{"header": "header: X-Api-Key", "query": "query: key"} {
		t.Run(place, func(t *testing.T) {
			var received []string
			grant := serve(t, func(w http.ResponseWriter, r *http.Request) {
				received = append(received, r.Header.Get("X-Api-Key")+r.URL.Query().Get("key"))
				echo(w, r)
			})
			var log bytes.Buffer
			r, memory := watch(t, Options{
				Logger:    slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
				LookupEnv: func(name string) (string, bool) { return secretValue, name == "HOST_KEY" },
			}, formsOf(secretValue))
			m := manifest(t, netprobe, "permissions: {network: [{host: api.example.com}], secrets: [{name: API_KEY, "+in+", host: api.example.com}]}")
			guest := load(t, r, m, manifests.Grants{
				Network: []manifests.NetworkGrant{grant},
				Secrets: []manifests.SecretGrant{{Name: "API_KEY", From: manifests.SecretSource{Env: "HOST_KEY"}, Host: "api.example.com", Place: m.Permissions.Secrets[0].Place}},
			})
			outcome, err := invoke(t, guest, `{"steps":[{"do":"secret","name":"API_KEY"},
				{"do":"net","requests":[{"method":"GET","url":"https://api.example.com/v1?a=b&key=mine"},{"method":"GET","url":"https://api.example.com/denied\u0000"}]}]}`)
			require.NoError(t, err, outcome.Result.Error)
			require.Len(t, received, 1)
			assert.Contains(t, received[0], secretValue, "the API got it")
			assert.Contains(t, string(outcome.Result.Data), "[secret API_KEY]", "the guest got a mark in its place")

			assert.Greater(t, memory.looked, 5)
			assert.Empty(t, memory.found, "the value in the guest's memory")
			assertHolds(t, false, secretValue, asJSON(t, outcome), "record")
			assertHolds(t, false, secretValue, log.String(), "log")
			assertHolds(t, false, secretValue, fmt.Sprintf("%+v %#v", guest.Decisions(), guest.permit.Secrets), "decisions")
		})
	}
}

// TestSecretInTheEnvironmentControl: the same search finds a secret that is handed to the guest,
// as is usual.
func TestSecretInTheEnvironmentControl(t *testing.T) {
	r, memory := watch(t, Options{}, formsOf(secretValue))
	m := manifest(t, probe, "permissions: {env: [API_KEY]}")
	guest := load(t, r, m, manifests.Grants{Env: []manifests.EnvGrant{{Name: "API_KEY", Value: secretValue}}})
	outcome := mustInvoke(t, guest, `{}`)
	assert.True(t, memory.found["raw"])
	assertHolds(t, true, secretValue, asJSON(t, outcome), "record")
}

// TestOutputAndLogAreMasked: however a guest got the value, its output and log do not show it. Here it is given the
// value, once as a variable and once as an argument.
func TestOutputAndLogAreMasked(t *testing.T) {
	r := newRuntime(t, Options{LookupEnv: func(string) (string, bool) { return secretValue, true }})
	m := manifest(t, netprobe, "permissions: {env: [COPY], secrets: [{name: API_KEY, header: X-Api-Key, host: api.example.com}], network: [{host: api.example.com}]}")
	secret := []manifests.SecretGrant{{Name: "API_KEY", From: manifests.SecretSource{Env: "HOST_KEY"}, Host: "api.example.com"}}
	variable := []manifests.EnvGrant{{Name: "COPY", Value: secretValue}}
	for name, c := range map[string]struct {
		secrets []manifests.SecretGrant
		holds   bool
	}{"masked": {secret, false}, "control": {nil, true}} {
		t.Run(name, func(t *testing.T) {
			guest := load(t, r, m, manifests.Grants{Env: variable, Secrets: c.secrets})
			outcome := mustInvoke(t, guest, `{"steps":[{"do":"env","name":"COPY"}]}`)
			assertHolds(t, c.holds, secretValue, string(outcome.Result.Data), "data")
			assertHolds(t, c.holds, secretValue, asJSON(t, outcome), "record")

			outcome = mustInvoke(t, guest, `{"steps":[{"do":"`+secretValue+`"}]}`)
			require.Contains(t, outcome.Log, "cannot do")
			assertHolds(t, c.holds, secretValue, outcome.Log, "log")
			assertHolds(t, c.holds, secretValue, asJSON(t, outcome), "record")
		})
	}
}

// TestNoRuleHoldsASecret: if a guest asks for a name that is a secret's value, the rules in the receipt would contain
// the value. With a mask in them they would be rules for something else.
func TestNoRuleHoldsASecret(t *testing.T) {
	const value = "plain-value_of-24_bytes-"
	r := newRuntime(t, Options{LookupEnv: func(string) (string, bool) { return value, true }})
	m := manifest(t, "wasm-tools/files/files.wasm", `
module: {path: guest.wasm, args: [read], stdout: result}
permissions: {secrets: [{name: API_KEY, header: X-Api-Key, host: api.example.com}]}`)
	secret := []manifests.SecretGrant{{Name: "API_KEY", From: manifests.SecretSource{Env: "HOST_KEY"}, Host: "api.example.com"}}
	for name, c := range map[string]struct {
		secrets []manifests.SecretGrant
		holds   bool
	}{"masked": {secret, false}, "control": {nil, true}} {
		t.Run(name, func(t *testing.T) {
			guest := load(t, r, m, manifests.Grants{Secrets: c.secrets})
			outcome, err := invoke(t, guest, `{"path":"/`+value+`/x"}`)
			require.ErrorIs(t, err, tool.Denied)
			require.Len(t, outcome.Denials, 1)
			allow := outcome.Denials[0].Allow
			assert.Equal(t, c.holds, allow.Manifest != nil)
			assert.Equal(t, c.holds, allow.Grant != nil)
			assertHolds(t, c.holds, value, asJSON(t, outcome), "record")
			for _, rule := range []json.RawMessage{allow.Manifest, allow.Grant} {
				assert.True(t, rule == nil || json.Valid(rule))
			}
		})
	}
}

// TestSecretGoesToItsHostAlone: the operator's word binds the secret, not the manifest's, and
// neither a second host nor a redirect gets it.
func TestSecretGoesToItsHostAlone(t *testing.T) {
	var received []string
	see := func(w http.ResponseWriter, r *http.Request) {
		received = append(received, fmt.Sprint(r.Header, r.URL))
		if target := r.URL.Query().Get("to"); target != "" {
			http.Redirect(w, r, target, http.StatusFound)
		}
	}
	api, other := serve(t, see), serve(t, see)
	other.Host = "other.example.com"
	r := newRuntime(t, Options{LookupEnv: func(string) (string, bool) { return secretValue, true }})
	secret := manifests.SecretGrant{Name: "API_KEY", From: manifests.SecretSource{Env: "HOST_KEY"}, Host: "api.example.com"}
	grants := manifests.Grants{Network: []manifests.NetworkGrant{api, other}, Secrets: []manifests.SecretGrant{secret}}

	// A manifest that names another host than the grant gets nothing.
	thief := load(t, r, manifest(t, netprobe, "permissions: {network: [{host: other.example.com}], secrets: [{name: API_KEY, header: X-Api-Key, host: other.example.com}]}"), grants)
	assert.Empty(t, thief.Decisions()[0].Effective)
	assert.Contains(t, thief.Decisions()[0].Reason, "api.example.com")
	outcome := mustInvoke(t, thief, `{"steps":[{"do":"secret","name":"API_KEY"},{"do":"net","requests":[`+get("https://other.example.com/")+`]}]}`)
	assert.Contains(t, string(outcome.Result.Data), `"exists":false`)
	require.Len(t, outcome.Denials, 1)
	assert.Equal(t, "secrets", outcome.Denials[0].Permission)
	require.Len(t, received, 1)
	assertHolds(t, false, secretValue, received[0], "the other host")

	// One that names the right host gets it there, also after a redirect, and nowhere else.
	received = nil
	both := load(t, r, manifest(t, netprobe, `permissions:
  network: [{host: "*.example.com"}]
  secrets: [{name: API_KEY, header: X-Api-Key, host: api.example.com}]`), grants)
	_, outcome = mustFetch(t, both, get("https://api.example.com/?to=https://other.example.com/there"))
	require.Len(t, received, 2)
	assertHolds(t, true, secretValue, received[0], "its own host")
	assertHolds(t, false, secretValue, received[1], "the other host, after a redirect")
}

// TestSecretReceiptIsWhyACallFails: a tool that does not get its secret and fails was denied;
// one that got along with another did not fail for it.
func TestSecretReceiptIsWhyACallFails(t *testing.T) {
	r := newRuntime(t, Options{LookupEnv: func(name string) (string, bool) { return secretValue, name == "SECOND" }})
	m := manifest(t, netprobe, `permissions:
  network: [{host: api.example.com}]
  secrets: [{name: FIRST, header: X-A, host: api.example.com}, {name: SECOND, header: X-B, host: api.example.com}]`)
	second := []manifests.SecretGrant{{Name: "SECOND", From: manifests.SecretSource{Env: "SECOND"}, Host: "api.example.com"}}
	fails := `{"do":"nothing without FIRST"}`

	outcome, err := invoke(t, load(t, r, m, manifests.Grants{}), `{"steps":[{"do":"secret","name":"FIRST"},`+fails+`]}`)
	require.ErrorIs(t, err, tool.Denied)
	assert.Contains(t, outcome.Result.Error, "denied: secrets FIRST")
	assert.Equal(t, `{"tools":["guest"],"secrets":[{"name":"FIRST","from":{"env":"FIRST"},"host":"api.example.com"}]}`, string(outcome.Denials[0].Allow.Grant))

	outcome, err = invoke(t, load(t, r, m, manifests.Grants{Secrets: second}),
		`{"steps":[{"do":"secret","name":"FIRST"},{"do":"secret","name":"SECOND"},{"do":"no such thing"}]}`)
	require.NoError(t, err)
	assert.Equal(t, tool.ToolFailed, outcome.Result.Kind)
	assert.Len(t, outcome.Denials, 1, "it is in the record all the same")

	outcome, err = invoke(t, load(t, r, m, manifests.Grants{}), `{"steps":[{"do":"secret","name":"HOST_ROOT_PASSWORD"},{"do":"nothing without HOST_ROOT_PASSWORD"}]}`)
	require.ErrorIs(t, err, tool.Denied)
	assert.Contains(t, outcome.Result.Error, "HOST_ROOT_PASSWORD")
}
