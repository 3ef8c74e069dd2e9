package executor

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"unicode/utf8"

	"github.com/caisson-run/caisson/tool"
)

// request is what the caller's request says to one tool, checked. It is part of what approvals and cached results
// of every call that may reach the tool are bound to, so it is hashed once. The zero value says nothing.
type request struct {
	said   tool.Request
	digest [sha256.Size]byte
}

func newRequest(name string, said tool.Request) (request, error) {
	d := said.Definition
	if len(d) > 0 && (!bytes.HasPrefix(bytes.TrimSpace(d), []byte("{")) || !json.Valid(d) || !utf8.Valid(d)) {
		return request{}, fmt.Errorf("Requests[%q].Definition is not a JSON object", name)
	}
	size := len(d)
	for key, value := range said.Values {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return request{}, fmt.Errorf("Requests[%q].Values[%q] is not valid UTF-8", name, key)
		}
		size += len(key) + len(value)
	}
	if size > tool.MaxArgumentsBytes {
		return request{}, fmt.Errorf("the request to %s has %d bytes, over the limit of %d", tool.Shown(name, 64), size, tool.MaxArgumentsBytes)
	}
	if size == 0 {
		return request{}, nil
	}
	r := request{said: said}
	r.said = r.copied()
	r.digest = sha256.Sum256(appendValues(appendText(nil, string(d)), said.Values))
	return r, nil
}

// copied returns a copy that a tool may modify.
func (r request) copied() tool.Request {
	return tool.Request{Definition: bytes.Clone(r.said.Definition), Values: maps.Clone(r.said.Values)}
}

// append appends what identifies the request.
func (r request) append(to []byte) []byte { return append(to, r.digest[:]...) }

// requests returns what the caller's request says to tools, by registered name.
func (e *Executor) requests(given map[string]tool.Request) (map[string]request, error) {
	if len(given) == 0 {
		return nil, nil
	}
	requests := make(map[string]request, len(given))
	for name, said := range given {
		r, err := newRequest(name, said)
		if err != nil {
			return nil, err
		}
		entry, ok := e.resolver.Get(name)
		if !ok {
			continue
		}
		if _, twice := requests[entry.Name]; twice {
			return nil, fmt.Errorf("the tool %s is in Requests twice, by its name and an alias or by two aliases", entry.Name)
		}
		requests[entry.Name] = r
	}
	return requests, nil
}
