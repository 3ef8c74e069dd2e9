package secrets

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
	"github.com/caisson-run/caisson/tool"
)

// Bounds of a value, in bytes.
const (
	// MinValue is the length from which on values are masked. Shorter ones need
	// [manifests.SecretGrant.Force].
	MinValue = 16
	MaxValue = 8 << 10
)

// Options say which secrets a tool gets. Only Requests and Grants together give any.
type Options struct {
	Tool     string // for what receipts suggest
	Module   string // its module's SHA-256, in lower-case hex digits; empty: no grant that is bound to one holds
	Requests []manifests.SecretPermission
	Grants   []manifests.SecretGrant
	Deny     []Denied
	// Network is what the manifest asks of the network: what is suggested to the operator
	// names its scheme and ports.
	Network []manifests.NetworkPermission
	// LookupEnv reads the host's environment, as os.LookupEnv does. Nil: it is empty.
	LookupEnv func(name string) (value string, set bool)
}

// Denied takes a secret away, whatever grants give.
type Denied struct {
	Origin string // where that is written; it may be empty
	Name   string
}

// Set holds the secrets of one tool. Get one from [New]. It does not change, and is safe
// for concurrent use. A nil Set holds nothing. However it is printed, it shows the names of
// its secrets alone.
type Set struct {
	tool      string // for what receipts suggest
	requests  map[string]*outcome
	decisions []tool.Decision
	// open returns what holds values. It is a function since fmt looks into everything
	// else: it calls no methods on unexported fields, and follows pointers where a verb
	// does not fit.
	open func() contents
}

// contents is the part of a set that is never shown.
type contents struct {
	bindings map[origin][]*binding
	masker   *masker // nil where no value is to be masked
	places   places
}

// places bound how many long texts are masked or filled in at a time: as many as there are processors.
// Of more, those that wait can leave as soon as their time is over, and those under way need not wait
// for a processor to see that theirs is.
type places chan struct{}

func newPlaces() places { return make(places, runtime.GOMAXPROCS(0)) }

// enter waits for a place, if a text is long. The error is that of a context that has ended meanwhile.
func (p places) enter(ctx context.Context, text []byte) (leave func(), err error) {
	if len(text) <= stretch {
		return func() {}, nil
	}
	select {
	case p <- struct{}{}:
		return func() { <-p }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// binding is one secret in effect.
type binding struct {
	name  string
	place manifests.SecretPlace
	value string
}

// outcome is what became of all requests for one name.
type outcome struct {
	effective bool
	// denial is the receipt for the first request that came to nothing.
	denial tool.Denial
}

// New decides which of the requested secrets the grants give, and reads their values, once.
//
// A secret whose value is not set, in the environment or in an age file, is not in effect,
// and its [tool.Decision] says so. A source that cannot be read and a value that cannot be
// used are errors, as is a grant that contradicts another one. They match [ErrSource],
// [ErrValue] and [ErrGrant].
func New(options Options) (*Set, error) {
	var grants []grant
	for _, granted := range options.Grants {
		g, err := readGrant(granted)
		if err != nil {
			return nil, err
		}
		grants = append(grants, g)
	}
	d := newDecider(options, grants)
	var requests []request
	for _, requested := range options.Requests {
		requests = append(requests, readRequest(requested))
	}
	if err := d.decide(requests); err != nil {
		return nil, err
	}
	masker, err := newMasker(d.masked)
	if err != nil {
		return nil, err
	}
	held := contents{d.bindings, masker, newPlaces()}
	return &Set{tool: options.Tool, requests: d.requests, decisions: d.decisions, open: func() contents { return held }}, nil
}

// held returns what holds values; nothing for a set that does not come from New.
func (s *Set) held() contents {
	if s == nil || s.open == nil {
		return contents{}
	}
	return s.open()
}

// Decisions returns one decision for each requested secret, in the manifest's order.
func (s *Set) Decisions() []tool.Decision {
	if s == nil {
		return nil
	}
	return slices.Clone(s.decisions)
}

// Names returns the names of the secrets in effect, sorted.
func (s *Set) Names() []string {
	names := []string{}
	if s == nil {
		return names
	}
	for name, outcome := range s.requests {
		if outcome.effective {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Exists reports whether a secret is in effect, for any host.
func (s *Set) Exists(name string) bool {
	return s != nil && s.requests[name] != nil && s.requests[name].effective
}

// Requested reports whether the manifest asks for a secret.
func (s *Set) Requested(name string) bool { return s != nil && s.requests[name] != nil }

// Places returns where secrets go in requests to an origin: what a guest may not write
// there itself, nor under a name that [manifests.FoldName] makes the same. A port of 0 is the
// scheme's own.
func (s *Set) Places(scheme string, host permission.Host, port int) []manifests.SecretPlace {
	var places []manifests.SecretPlace
	for _, b := range s.held().bindings[newOrigin(scheme, host, port)] {
		places = append(places, b.place)
	}
	return places
}

// Mask returns text in which "[secret NAME]" stands for each occurrence of a value, in all
// the forms that the package's documentation lists. It returns text itself where it finds
// none, and never changes it. Masking twice is masking once.
//
// The time grows linearly with the text, whatever is in it. For texts that may be long, there is
// [Set.MaskFirst].
func (s *Set) Mask(text []byte) []byte {
	masker := s.held().masker
	if masker == nil {
		return text
	}
	return newSearch(masker, never).mask(text, len(text))
}

// MaskFirst masks all of text and returns what became of its first n bytes; a form that
// begins in them is seen to its end and replaced whole. It is for readers that stop at n
// bytes: where they read [Set.Longest] more, no part of a form is left at the cut. It stops
// soon after ctx has ended, and returns its error and no text.
func (s *Set) MaskFirst(ctx context.Context, text []byte, n int) ([]byte, error) {
	n = max(0, min(n, len(text)))
	held := s.held()
	if held.masker == nil {
		return text[:n:n], nil
	}
	leave, err := held.places.enter(ctx, text)
	if err != nil {
		return nil, err
	}
	defer leave()
	// A context that is late itself, as timers are on a busy machine, ends all the same.
	deadline, bounded := ctx.Deadline()
	search := newSearch(held.masker, func() bool { return ctx.Err() != nil || bounded && !time.Now().Before(deadline) })
	masked := search.mask(text, n)
	if search.expired() {
		return nil, cmp.Or(ctx.Err(), context.DeadlineExceeded)
	}
	return masked, nil
}

// MaskText is [Set.Mask] for a string.
func (s *Set) MaskText(text string) string {
	masker := s.held().masker
	if masker == nil || len(text) < MinValue { // no form is shorter than its value
		return text
	}
	return string(newSearch(masker, never).mask([]byte(text), len(text)))
}

// Longest is the length in bytes of the longest form of a value that Mask finds: hexadecimal with
// [MaxBetween] separators between any two digits. It is 0 where there is nothing to mask.
func (s *Set) Longest() int {
	if masker := s.held().masker; masker != nil {
		return masker.longest
	}
	return 0
}

// String returns the names of the secrets in effect.
func (s Set) String() string { return "secrets.Set(" + strings.Join(s.Names(), ", ") + ")" }

// GoString is String.
func (s Set) GoString() string { return s.String() }

// Format writes String, whatever the verb.
func (s Set) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, s.String()) }

// MarshalJSON writes the names of the secrets in effect, as a list.
func (s Set) MarshalJSON() ([]byte, error) { return json.Marshal(s.Names()) }

// LogValue is String.
func (s Set) LogValue() slog.Value { return slog.StringValue(s.String()) }

// checkValue refuses values that could not stand in a request as they are, since another
// form on the wire would not be the one that is masked, and those too short to be masked.
func checkValue(grant manifests.SecretGrant, place manifests.SecretPlace, value string) error {
	problem := ""
	switch {
	case value == "":
		problem = "the value is empty"
	case len(value) > MaxValue:
		problem = fmt.Sprintf("the value is longer than %d KiB", MaxValue>>10)
	case !utf8.ValidString(value):
		problem = "the value is not valid UTF-8"
	case strings.ContainsFunc(value, unicode.IsControl):
		problem = "the value holds a line break or another control character"
	case strings.TrimSpace(value) != value:
		problem = "the value begins or ends with a space"
	case place.Header != "" && strings.ContainsFunc(value, func(r rune) bool { return r > unicode.MaxASCII }):
		problem = "the value goes into a header and is not ASCII"
	case len(value) < MinValue && !grant.Force:
		problem = fmt.Sprintf("the value is shorter than %d bytes, so responses cannot be masked for it; use a longer one, or say force: true in the grant", MinValue)
	default:
		return nil
	}
	return &Error{Op: "read", Name: grant.Name, Origin: grant.Origin, Kind: ErrValue, Message: problem}
}
