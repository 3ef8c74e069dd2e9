package interpreters

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

// TestRequests: a request carries what the script gave, in each type that has bytes, or fails and says why.
func TestRequests(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.Header.Get("X-Number"), body)
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	w := newWorld(t)
	policy, err := manifests.ParsePolicy(filepath.Join(w.dir, "caisson.yaml"), fmt.Appendf(nil, "schema: caisson-config/v1\ngrants: [{tools: [script], network: [{host: 127.0.0.1, ports: [%s], schemes: [http], methods: [POST]}]}]\n", port))
	require.NoError(t, err)
	w.grants = policy.For("script", filepath.Join(w.dir, "tool.yaml"))
	more := fmt.Sprintf("permissions: {network: [{host: 127.0.0.1, ports: [%s], schemes: [http], methods: [POST]}]}\n", port)
	for file, c := range map[string]struct {
		script string
		want   string
	}{
		"a.py": {`
import caisson

def attempt(f):
    try:
        return f()
    except (caisson.Error, ValueError) as error:
        return f"{getattr(error, 'status', '')}: {error}".split(": it has 335")[0]

def run(a):
    def post(body):
        return caisson.fetch(a["url"], method="POST", headers={"X-Number": 5}, body=body).text
    return [post(b"a"), post(bytearray(b"b")), post(memoryview(b"cd")), post("é"), post([1]),
            attempt(lambda: post(b"x" * (32 << 20))), attempt(lambda: caisson.emit(type="json", data=float("nan")))]
`, `["5 a", "5 b", "5 cd", "5 é", "5 [1]", "limit: the request is too long", ": Out of range float values are not JSON compliant: nan"]`},
		"a.mjs": {`
import * as caisson from "/caisson/lib/caisson.mjs";

export default ({ url }) => {
  const post = (body) => caisson.fetch(url, { method: "POST", headers: { "X-Number": 5 }, body }).text();
  const bytes = new Uint8Array([97, 98, 99]);
  const all = [post(bytes), post(bytes.subarray(1)), post(bytes.buffer), post(new DataView(bytes.buffer, 2)), post("é"), post([1])];
  try {
    post(new Uint8Array(32 << 20)); // the length depends on the port
  } catch (error) {
    all.push(error.status + ": " + error.message.split(": it has 335")[0]);
  }
  return all;
}
`, `["5 abc", "5 bc", "5 abc", "5 c", "5 é", "5 [1]", "limit: the request is too long"]`},
	} {
		t.Run(filepath.Ext(file), func(t *testing.T) {
			arguments, err := json.Marshal(map[string]string{"url": "http://127.0.0.1:" + port + "/"})
			require.NoError(t, err)
			outcome := call(t, w.tool(file, c.script, more), string(arguments))
			require.True(t, outcome.Result.Success, "%s\n%s", outcome.Result.Error, outcome.Log)
			var got, want []string
			require.NoError(t, json.Unmarshal(outcome.Result.Data, &got))
			require.NoError(t, json.Unmarshal([]byte(c.want), &want))
			assert.Equal(t, want, got)
		})
	}
}
