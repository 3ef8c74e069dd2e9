package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/tool"
)

const (
	maxAnswer   = 16 << 20        // bytes of one answer, with all that stands around the model's words
	maxRefusal  = 64 << 10        // bytes that are read of an answer that is an error
	maxSilence  = 2 * time.Minute // between two pieces of an answer
	maxAttempts = 4
)

var errSilence = errors.New("the model's server was silent for too long")

// endpoint is an API for chat completions. It is safe for concurrent use.
type endpoint struct {
	client  *http.Client
	dialect dialects.Dialect
	url     string
	key     string        // empty: none is sent
	timeout time.Duration // of one answer
	silence time.Duration
	wait    waiter
}

func newEndpoint(o options, env environment) (*endpoint, error) {
	address, err := url.Parse(o.baseURL)
	if err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != "http" {
		return nil, failed(exitUsage, "--base-url is no http or https URL", "write it like https://api.example.com/v1")
	}
	if address.User != nil {
		return nil, failed(exitUsage, "--base-url holds a password, which would be in logs", "put the key into a variable and name it: --api-key-env NAME")
	}
	key, err := keyFrom(o.keyEnv, env)
	if err != nil {
		return nil, err
	}
	if key != "" && address.Scheme == "http" && !isLoopback(address.Hostname()) {
		return nil, failed(exitUsage, "the API key would cross the network for everybody to read", "use https in --base-url, or leave out --api-key-env")
	}
	return &endpoint{
		client: &http.Client{Transport: env.transport, CheckRedirect: stay}, dialect: newDialect(),
		url: address.JoinPath("chat", "completions").String(), key: key, timeout: o.timeout, silence: maxSilence, wait: env.wait,
	}, nil
}

func keyFrom(variable string, env environment) (string, error) {
	if variable == "" {
		return "", nil
	}
	key, _ := env.lookupEnv(variable)
	if key = strings.TrimSpace(key); key == "" {
		return "", failed(exitUsage, fmt.Sprintf("--api-key-env: the variable %s is not set", variable))
	}
	return key, nil
}

func isLoopback(host string) bool {
	address := net.ParseIP(host)
	return host == "localhost" || address != nil && address.IsLoopback()
}

// newTransport returns what requests go through. It keeps no secret.
func newTransport() http.RoundTripper {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 15 * time.Second, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 64 << 10,
	}
}

// stay follows no redirect: neither the key nor the conversation goes to where a server points.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// answer sends a request, shows the pieces of the answer as they come, and returns the whole. A
// server that has no time is asked again; once it has begun to answer, never.
func (e *endpoint) answer(ctx context.Context, request []byte, show func(tool.StreamResponse)) (tool.ChatResponse, error) {
	for attempt := 1; ; attempt++ {
		response, err := e.once(ctx, request, show)
		var busy *busyError
		if !errors.As(err, &busy) || attempt == maxAttempts {
			return response, err
		}
		if err := e.wait(ctx, busy.pause(attempt)); err != nil {
			return response, err
		}
	}
}

func (e *endpoint) once(ctx context.Context, request []byte, show func(tool.StreamResponse)) (tool.ChatResponse, error) {
	timed, stop := context.WithTimeoutCause(ctx, e.timeout, fmt.Errorf("the model's answer took longer than %s", e.timeout))
	defer stop()
	watched, cancel := context.WithCancelCause(timed)
	defer cancel(nil)
	alarm := time.AfterFunc(e.silence, func() { cancel(errSilence) })
	defer alarm.Stop()
	response, err := e.post(watched, request)
	if err != nil {
		return tool.ChatResponse{}, ended(ctx, watched, e.unreachable(err))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return tool.ChatResponse{}, e.refused(response)
	}
	body := &attended{http.MaxBytesReader(nil, response.Body, maxAnswer), alarm, e.silence}
	answer, err := e.read(response.Header.Get("Content-Type"), body, show)
	if err != nil {
		return tool.ChatResponse{}, ended(ctx, watched, e.brokenOff(err))
	}
	return answer, nil
}

func (e *endpoint) post(ctx context.Context, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("User-Agent", "caisson-agent")
	if e.key != "" {
		request.Header.Set("Authorization", "Bearer "+e.key)
	}
	return e.client.Do(request)
}

// read reads an answer, which is a stream, or whole where the server has no streams.
func (e *endpoint) read(contentType string, body io.Reader, show func(tool.StreamResponse)) (tool.ChatResponse, error) {
	if kind, _, _ := mime.ParseMediaType(contentType); kind == "application/json" {
		document, err := io.ReadAll(body)
		if err != nil {
			return tool.ChatResponse{}, err
		}
		response, err := e.dialect.Response(document)
		if err == nil && response.Content != "" {
			show(tool.StreamResponse{ID: response.ID, ResponseType: tool.ResponseAnswer, Content: response.Content})
		}
		return response, err
	}
	stream := e.dialect.Stream()
	for event, err := range dialects.Events(body) {
		if err != nil {
			return tool.ChatResponse{}, err
		}
		pieces, err := stream.Event(event.Name, event.Data)
		showAll(show, pieces)
		if err != nil {
			return tool.ChatResponse{}, err
		}
		if string(bytes.TrimSpace(event.Data)) == "[DONE]" {
			break // some servers leave the connection open
		}
	}
	pieces, err := stream.End()
	showAll(show, pieces)
	return stream.Response(), err
}

func showAll(show func(tool.StreamResponse), pieces []tool.StreamResponse) {
	for _, piece := range pieces {
		show(piece)
	}
}

// attended is an answer that is waited for as long as something comes.
type attended struct {
	io.Reader
	alarm   *time.Timer
	silence time.Duration
}

func (a *attended) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if n > 0 {
		a.alarm.Reset(a.silence)
	}
	return n, err
}
