package secrets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/permission"
)

// Inject puts the secrets that are bound to the request's origin into the request, and returns the body, which is a new
// slice if a secret went into it. A secret replaces the value in its place, and headers and parameters whose names
// servers may treat as the same ([permission.FoldHeader] and [permission.FoldName]). Inject modifies the request's
// Header and URL. The caller sets Body and ContentLength from the returned body.
//
// The caller must have decided that this request may be sent, and calls Inject for each hop.
//
// A body that takes a secret must be a JSON object or a form of at most 1 MiB, according to the
// request's Content-Type. For any other body Inject fails with an [*Error] of kind [hostfuncs.ErrInvalid],
// and the request must not be sent. GET and HEAD requests without a body stay without one. Once the
// request's context is done, Inject may fail with its error.
func (s *Set) Inject(request *http.Request, body []byte) ([]byte, error) {
	bindings := s.held().bindings
	target, ok := originOf(request.URL)
	if !ok || len(bindings) == 0 {
		return body, nil
	}
	for _, b := range bindings[target] {
		var err error
		if body, err = s.inject(b, request, body); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// maxFilled is the longest body in bytes that a secret is put into. Reading one takes some 20
// milliseconds at worst, and nothing interrupts that.
const maxFilled = 1 << 20

func (s *Set) inject(b *binding, request *http.Request, body []byte) ([]byte, error) {
	switch {
	case b.place.Header != "":
		b.intoHeader(request)
		return body, nil
	case b.place.Query != "":
		request.URL.RawQuery = setParameter(request.URL.RawQuery, b.place.Query, b.value)
		return body, nil
	case len(body) == 0 && (request.Method == http.MethodGet || request.Method == http.MethodHead || request.Method == ""):
		return body, nil
	case len(body) > maxFilled:
		return nil, b.refuse(fmt.Sprintf("the body takes a secret, so it may be at most %d bytes long", maxFilled))
	}
	leave, err := s.held().places.enter(request.Context(), body)
	if err != nil {
		return nil, err
	}
	defer leave()
	return b.intoBody(request.Header, body)
}

// intoHeader sets the secret's header, and removes those that CGI turns into the same variable: X-Key and X_Key.
func (b *binding) intoHeader(request *http.Request) {
	if request.Header == nil {
		request.Header = http.Header{}
	}
	for key := range request.Header {
		if permission.FoldHeader(key) == permission.FoldHeader(b.place.Header) {
			delete(request.Header, key)
		}
	}
	request.Header.Set(b.place.Header, b.place.Prefix+b.value)
}

func (b *binding) intoBody(header http.Header, body []byte) ([]byte, error) {
	types := header.Values("Content-Type")
	if len(types) != 1 || len(header.Values("Content-Encoding")) > 0 {
		return nil, b.refuse("the body takes a secret, so it needs one Content-Type and no Content-Encoding")
	}
	media, parameters, err := mime.ParseMediaType(types[0])
	charset, named := parameters["charset"]
	switch {
	case err != nil:
		return nil, b.refuse("the Content-Type is not valid")
	case named && !strings.EqualFold(charset, "utf-8"): // another charset may encode the name as other bytes
		return nil, b.refuse("the body takes a secret, so its charset must be UTF-8")
	case media == "application/x-www-form-urlencoded":
		return []byte(setParameter(string(body), b.place.Body, b.value)), nil
	case media == "application/json" || strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json"):
		filled, ok := setMember(body, b.place.Body, b.value)
		if !ok {
			return nil, b.refuse("the body takes a secret, so it must be a JSON object")
		}
		return filled, nil
	default:
		return nil, b.refuse("the body takes a secret, so it must be JSON or a form")
	}
}

func (b *binding) refuse(message string) error {
	message = fmt.Sprintf("%s (in %q)", message, b.place.Body)
	return &Error{Name: b.name, Kind: hostfuncs.ErrInvalid, Message: message}
}

// maxBodyDepth is the maximum nesting of a body, as in the standard library.
const maxBodyDepth = 10_000

// setMember removes every top-level member with the name from a JSON object, however the name is escaped, and appends
// one with the value as a string: readers that ignore the case of names take the last one. All other members are kept
// byte for byte. It returns false if the text is not a single JSON object.
func setMember(object []byte, name, value string) ([]byte, bool) {
	limits := jsontext.Limits{Depth: maxBodyDepth, Values: len(object) + 1, Repeated: true, Shallow: true}
	doc, err := jsontext.Parse(string(object), limits)
	if err != nil || doc.Root().Kind() != jsontext.Object {
		return nil, false
	}
	start, end := doc.Root().Span()
	from, kept := start+1, 0
	out := append(make([]byte, 0, len(object)+len(name)+len(value)+8), object[:from]...)
	for key, member := range doc.Root().Members() {
		_, to := member.Span()
		to += bytes.IndexAny(object[to:], ",}")
		if key.String() != name {
			if kept++; kept > 1 {
				out = append(out, ',')
			}
			out = append(out, object[from:to]...)
		}
		from = to + 1
	}
	if kept > 0 {
		out = append(out, ',')
	}
	out = appendText(out, name)
	out = append(out, ':')
	out = appendText(out, value)
	return append(out, object[end-1:]...), true
}

func appendText(out []byte, text string) []byte {
	// A string always has a JSON form.
	encoded, _ := json.Marshal(text)
	return append(out, encoded...)
}

// setParameter removes every parameter with the name from a query or a form, however the name is escaped, and adds one
// with the value. It also removes names that a server may treat as the same: some ignore case; PHP reads a dot as _,
// skips leading spaces, ends the name at a NUL, reads name[] as a list and an unclosed bracket as _; others read [name]
// as the name, or start a parameter at a semicolon. Finally it removes names with invalid escapes, which servers repair
// in different ways. All other parameters are kept byte for byte.
func setParameter(query, name, value string) string {
	var out strings.Builder
	out.Grow(len(query) + len(name) + len(value) + len("&="))
	name, wanted := escapeParameter(name), bare(name)
	if query != "" {
		for part := range strings.SplitSeq(query, "&") {
			if !holdsParameter(part, wanted) {
				out.WriteString(part)
				out.WriteByte('&')
			}
		}
	}
	out.WriteString(name)
	out.WriteByte('=')
	out.WriteString(escapeParameter(value))
	return out.String()
}

// holdsParameter reports whether a text between two ampersands is a parameter, or holds one after a semicolon.
func holdsParameter(part, wanted string) bool {
	for part != "" {
		one, rest, _ := strings.Cut(part, ";")
		if isParameter(one, wanted) {
			return true
		}
		part = rest
	}
	return false
}

func isParameter(part, wanted string) bool {
	key, _, _ := strings.Cut(part, "=")
	key, err := url.QueryUnescape(key)
	if err != nil {
		return true
	}
	key, _, _ = strings.Cut(key, "\x00")
	return bare(key) == wanted || strings.Contains(key, "[") && strings.Trim(permission.FoldName(key), "-") == wanted
}

// bare returns a name folded, without the surrounding characters that some servers skip.
func bare(name string) string {
	name = strings.TrimFunc(name, func(r rune) bool {
		return (r < 'a' || 'z' < r) && (r < 'A' || 'Z' < r) && (r < '0' || '9' < r)
	})
	name, _, _ = strings.Cut(name, "[")
	return strings.Trim(permission.FoldName(name), "-")
}

// escapeParameter escapes a text for a query or a form. It writes a space as %20, which works in both.
func escapeParameter(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}
