package mcp

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// fences report when a client's messages have left the SDK's queue. The SDK keeps the messages of a session in a queue
// without a bound, and does not continue with it while it writes some answers, such as that to initialize. A client may
// read these slowly. A fence is a notification of ours that follows a client's messages in their queue. When it is
// reached, they have left the queue, whether they were handled, cancelled or failed. The zero value is usable. It is
// safe for concurrent use.
type fences struct {
	mu   sync.Mutex
	open map[string]*fence // by number
}

// requestHeader has the number of a request over HTTP, or of a fence. The client's own is replaced: the SDK hands on
// headers, and neither contexts nor callers of requests.
const requestHeader = "Caisson-Mcp-Request"

// fence is one that was put behind messages. It must be removed.
type fence struct {
	of      *fences
	number  string // which no client knows
	reached chan struct{}
}

func (f *fences) put() *fence {
	one := &fence{f, rand.Text(), make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		f.open = map[string]*fence{}
	}
	f.open[one.number] = one
	return one
}

// reach reports whether a request is a fence, which is not handled any further.
func (f *fences) reach(extra *sdk.RequestExtra) bool {
	if extra == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	one, ok := f.open[extra.Header.Get(requestHeader)]
	if ok {
		delete(f.open, one.number)
		close(one.reached)
	}
	return ok
}

func (f *fence) remove() {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	delete(f.of.open, f.number)
}

// fenceMethod is a notification of any revision that changes nothing.
const fenceMethod = "notifications/progress"

const fenceParams = `{"progressToken":0,"progress":0}`

// message returns the fence as a message for the queue of a connection.
func (f *fence) message() jsonrpc.Message {
	header := http.Header{requestHeader: {f.number}}
	extra := &sdk.RequestExtra{Header: header}
	return &jsonrpc.Request{Method: fenceMethod, Params: json.RawMessage(fenceParams), Extra: extra}
}

// nowhere is where the SDK answers a fence over HTTP.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n nowhere) WriteHeader(int)             {}
