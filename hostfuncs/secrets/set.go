package secrets

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/masking"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// Limits on the length of a value, in bytes.
const (
	// minValue is the minimum length of a value that is masked. Shorter values require [manifests.SecretGrant.Force].
	minValue = 16
	maxValue = 8 << 10
)

// Options configure a [Set]. A tool gets the secrets that are both requested and granted.
type Options struct {
	Tool     string // its name, for the suggestions in receipts
	Module   string // its module's SHA-256 in lower-case hex; if empty, no grant bound to a module applies
	Requests []manifests.SecretPermission
	Grants   []manifests.SecretGrant
	Deny     []manifests.Deny // denials of other kinds are ignored
	// Network holds the manifest's network requests. Suggested grants use their schemes and ports.
	Network []manifests.NetworkPermission
	// LookupEnv reads the host's environment, like os.LookupEnv. If it is nil, the environment is empty.
	LookupEnv func(name string) (value string, set bool)
}

// Set holds the secrets of one tool. Create it with [New]. It is immutable and safe for concurrent
// use. A nil Set is empty. Every printed form of a Set shows only the names of its secrets.
type Set struct {
	tool      string // for the suggestions in receipts
	requests  map[string]*outcome
	decisions []tool.Decision
	given     []given
	// open returns the values. It is a function because fmt prints anything else: it calls no
	// methods on unexported fields, and follows pointers for a verb that does not fit.
	open func() contents
}

// contents is the part of a set that is never printed.
type contents struct {
	bindings map[permission.Origin][]*binding
	masker   *masking.Masker // nil if there is no value to mask
	places   places
}

// places limits how many long texts are masked or injected into concurrently to GOMAXPROCS. A call
// that waits for a place can give up as soon as its context is done, and a call that has one need
// not wait for a processor to notice that its context is done.
type places chan struct{}

// enter waits for a place if text is long. It fails with the error of ctx if ctx is done first.
func (p places) enter(ctx context.Context, text []byte) (leave func(), err error) {
	if len(text) <= masking.Stretch {
		return func() {}, nil
	}
	select {
	case p <- struct{}{}:
		return func() { <-p }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type binding struct {
	name  string
	place manifests.SecretPlace
	value string
}

// outcome is the combined outcome of all requests for one name.
type outcome struct {
	effective bool
	// denial is the receipt for the first request. It applies if no request is effective.
	denial tool.Denial
}

// New returns the requested secrets that are granted and not denied. It reads their values once.
//
// A secret whose value is not set in the environment or in an age file is not in effect, and its [tool.Decision] says
// so. New fails with [ErrSource] if a source cannot be read, with [ErrValue] if a value cannot be used, and with
// [ErrGrant] if a grant is invalid or conflicts with another one.
func New(options Options) (*Set, error) {
	var grants []grant
	for _, granted := range options.Grants {
		g, err := readGrant(granted)
		if err != nil {
			return nil, err
		}
		grants = append(grants, g)
	}
	d := &decider{
		Set:      &Set{tool: options.Tool, requests: map[string]*outcome{}},
		options:  options,
		grants:   grants,
		sources:  &sources{lookup: options.LookupEnv, ages: map[ageFile]map[string]string{}},
		bindings: map[permission.Origin][]*binding{},
	}
	var requests []request
	for _, requested := range options.Requests {
		requests = append(requests, readRequest(requested))
	}
	if err := d.decide(requests); err != nil {
		return nil, err
	}
	masker, err := maskerOf(d.masked)
	if err != nil {
		return nil, err
	}
	held := contents{d.bindings, masker, make(places, runtime.GOMAXPROCS(0))}
	d.open = func() contents { return held }
	return d.Set, nil
}

// held returns the values. It is empty if the set is nil or was not created by New.
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

// Requested reports whether the manifest requests a secret.
func (s *Set) Requested(name string) bool { return s != nil && s.requests[name] != nil }

// Places returns where secrets go in requests to an origin. A guest may not set these places itself, nor any header for
// which [permission.FoldHeader] returns the same name.
func (s *Set) Places(origin permission.Origin) []manifests.SecretPlace {
	var places []manifests.SecretPlace
	for _, b := range s.held().bindings[origin] {
		places = append(places, b.place)
	}
	return places
}

// Unsent returns a receipt for each secret that the operator granted for the host, and that a request to the origin
// lacks: it has no value, or it is bound to another scheme or port. The receipts are notes; see [tool.Denial].
func (s *Set) Unsent(origin permission.Origin) []tool.Denial {
	if s == nil {
		return nil
	}
	sent := s.held().bindings[origin]
	var unsent []tool.Denial
	for _, g := range s.given {
		if g.host == origin.Host && !slices.ContainsFunc(sent, func(b *binding) bool { return b.name == g.name }) {
			receipt := denialOf(g.name, g.rule, tool.Allow{})
			receipt.Note = true
			unsent = append(unsent, receipt)
		}
	}
	return unsent
}

// maskerOf returns a masker for the values of secrets, or nil if there is nothing to mask.
func maskerOf(secrets []*binding) (*masking.Masker, error) {
	if len(secrets) == 0 {
		return nil, nil
	}
	var values []masking.Value
	for _, b := range secrets {
		values = append(values, masking.Value{Text: b.value, Placeholder: placeholder(b.name)})
	}
	masker := masking.New(values)
	for _, b := range secrets {
		if masker.Finds(placeholder(b.name)) {
			return nil,
				&Error{Name: b.name, Kind: ErrValue,
					Message: "a value is part of the placeholder that replaces it; use another value or name"}
		}
	}
	return masker, nil
}

func placeholder(name string) string { return "[secret " + name + "]" }

// Mask replaces each occurrence of a value in text, in all forms listed in the package documentation, with "[secret
// NAME]". If there is none, it returns text itself. It never modifies text. Mask is idempotent.
//
// The time is linear in the length of text. For texts that may be long, use [Set.MaskFirst].
func (s *Set) Mask(text []byte) []byte {
	masker := s.held().masker
	if masker == nil {
		return text
	}
	return masker.Mask(text, len(text), masking.Never)
}

// MaskFirst masks text and returns the masked form of its first n bytes. A value that begins in them is replaced whole.
// Callers that cut a text at n bytes should pass [Set.Longest] more, so that no part of a value is left at the cut.
// MaskFirst returns the error of ctx, and no text, soon after ctx is done.
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
	// Check the deadline too: on a busy machine, the context's timer may be late.
	deadline, bounded := ctx.Deadline()
	expired := func() bool { return ctx.Err() != nil || bounded && !time.Now().Before(deadline) }
	masked := held.masker.Mask(text, n, expired)
	if expired() {
		return nil, cmp.Or(ctx.Err(), context.DeadlineExceeded)
	}
	return masked, nil
}

// Longest returns the length in bytes of the longest form of a value that Mask finds: hexadecimal
// with [masking.MaxBetween] separators between any two digits. It returns 0 if there is nothing to mask.
func (s *Set) Longest() int {
	if masker := s.held().masker; masker != nil {
		return masker.Longest()
	}
	return 0
}

// String returns the names of the secrets in effect.
func (s Set) String() string { return "secrets.Set(" + strings.Join(s.Names(), ", ") + ")" }

// Format writes the text of [Set.String] for every verb.
func (s Set) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, s.String()) }

// MarshalJSON returns the names of the secrets in effect as an array.
func (s Set) MarshalJSON() ([]byte, error) { return json.Marshal(s.Names()) }

// checkValue rejects values that are too short to be masked, and values that cannot be sent
// literally: masking might miss another form.
func checkValue(grant manifests.SecretGrant, place manifests.SecretPlace, value string) error {
	problem := ""
	switch {
	case value == "":
		problem = "the value is empty"
	case len(value) > maxValue:
		problem = fmt.Sprintf("the value is longer than %d KiB", maxValue>>10)
	case !utf8.ValidString(value):
		problem = "the value is not valid UTF-8"
	case strings.ContainsFunc(value, unicode.IsControl):
		problem = "the value holds a line break or another control character"
	case strings.TrimSpace(value) != value:
		problem = "the value begins or ends with a space"
	case place.Header != "" && strings.ContainsFunc(value, func(r rune) bool { return r > unicode.MaxASCII }):
		problem = "the value goes into a header and is not ASCII"
	case len(value) < minValue && !grant.Force:
		problem = fmt.Sprintf(
			"the value is shorter than %d bytes, so responses cannot be masked for it; use a longer one, or say force: true "+
				"in the grant", minValue)
	default:
		return nil
	}
	return &Error{Name: grant.Name, Origin: grant.Origin, Kind: ErrValue, Message: problem}
}
