package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Emission is something that a call says before it has ended: a piece of its output, how far it
// has come, an image that is not done yet. Its JSON is what guests send to caisson:stream@1.
//
// It says what the tool wants it to say, control characters and all: whoever puts it on a terminal
// or into a page must make it safe there, as they must with a result.
type Emission struct {
	Type EmissionType `json:"type"`
	// Text is a piece of text, for [EmitText]; in a word or two what is being done, for
	// [EmitProgress], such as "searching"; a title, for [EmitLink].
	Text string `json:"text,omitempty"`
	// Data is any value, for [EmitJSON]; the image in base64 as a string, for [EmitImage]; a URL as
	// a string, for [EmitLink].
	Data json.RawMessage `json:"data,omitempty"`
	// Fraction is how much is done, from 0 to 1, for [EmitProgress]; nil where that is not known.
	Fraction *float64 `json:"fraction,omitempty"`
	MIMEType string   `json:"mime_type,omitempty"` // of an image, such as image/png
	// Partial is set for an image that a better one will take the place of.
	Partial bool `json:"partial,omitempty"`
}

// EmissionType says what an [Emission] is.
type EmissionType string

// The types of emissions.
const (
	EmitText     EmissionType = "text"
	EmitJSON     EmissionType = "json"
	EmitProgress EmissionType = "progress"
	EmitImage    EmissionType = "image"
	EmitLink     EmissionType = "link"
)

// MaxEmission is how many bytes an emission may have, by its Size.
const MaxEmission = 1 << 20

// Size returns how many bytes of text and data the emission has.
func (e *Emission) Size() int { return len(e.Text) + len(e.Data) + len(e.MIMEType) }

// Check returns what is wrong with an emission, worded for the tool's author, or nil. It takes
// time in proportion to the emission's size, and decodes no image.
func (e *Emission) Check() error {
	if size := e.Size(); size > MaxEmission {
		return fmt.Errorf("an emission has %d bytes; at most %d are taken", size, MaxEmission)
	}
	if !utf8.ValidString(e.Text) || !utf8.Valid(e.Data) {
		return errors.New("an emission is not valid UTF-8")
	}
	switch e.Type {
	case EmitText:
		return e.check("text", e.Text != "", "text")
	case EmitJSON:
		return e.check("data", json.Valid(e.Data), "data")
	case EmitProgress:
		if f := e.Fraction; f != nil && !(*f >= 0 && *f <= 1) {
			return fmt.Errorf("progress with the fraction %v; want 0 to 1", *f)
		}
		return e.check("text or fraction", e.Text != "" || e.Fraction != nil, "text", "fraction")
	case EmitImage:
		if !isImageType(e.MIMEType) {
			return errors.New("an emission of type image needs mime_type, such as image/png")
		}
		return e.check("data, the image in base64", isBase64(e.Data), "data", "mime_type", "partial")
	case EmitLink:
		return e.check("data, the URL of a page: https://… or http://…, without user and password", isLink(e.Data), "data", "text")
	}
	return fmt.Errorf("there is no type of emission %q; want text, json, progress, image or link", Shown(string(e.Type), 32))
}

// check refuses an emission without what its type needs, and one with what its type has no use
// for: whoever wrote that means something else.
func (e *Emission) check(needs string, ok bool, takes ...string) error {
	if !ok {
		return fmt.Errorf("an emission of type %s needs %s", e.Type, needs)
	}
	for _, member := range []struct {
		name  string
		given bool
	}{
		{"text", e.Text != ""}, {"data", e.Data != nil}, {"fraction", e.Fraction != nil}, {"mime_type", e.MIMEType != ""}, {"partial", e.Partial},
	} {
		if member.given && !slices.Contains(takes, member.name) {
			return fmt.Errorf("an emission of type %s takes no %s", e.Type, member.name)
		}
	}
	return nil
}

// Bytes returns the image that Data holds. It does not fail for an emission of type image that
// Check found nothing wrong with.
func (e *Emission) Bytes() ([]byte, error) {
	var image []byte // base64 in JSON
	err := json.Unmarshal(e.Data, &image)
	return image, err
}

// isImageType reports whether a text is a media type of images without parameters: image/ and a
// subtype as RFC 6838, section 4.2, restricts names. What is longer or holds anything else may
// mean something to whoever puts it in a header.
func isImageType(text string) bool {
	subtype, ok := strings.CutPrefix(text, "image/")
	return ok && subtype != "" && len(subtype) <= 127 && !strings.ContainsFunc(subtype, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$&-^_.+", r))
	})
}

// isBase64 reports whether a JSON value is a string that holds at least one byte in base64, as
// [encoding/json] reads it.
func isBase64(value []byte) bool {
	text, ok := bytes.CutPrefix(value, []byte{'"'})
	if !ok || !bytes.HasSuffix(text, []byte{'"'}) {
		return false
	}
	text = text[:len(text)-1]
	if bytes.IndexByte(text, '\\') >= 0 { // some escape every slash, and some break lines
		var plain string
		if json.Unmarshal(value, &plain) != nil {
			return false
		}
		text = []byte(strings.NewReplacer("\r", "", "\n", "").Replace(plain))
	}
	if len(text) == 0 || len(text)%4 != 0 {
		return false
	}
	for range 2 {
		text = bytes.TrimSuffix(text, []byte{'='})
	}
	for _, c := range text {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/') {
			return false
		}
	}
	return true
}

// isLink reports whether a JSON value is a string with the URL of a page. Other schemes, such as
// javascript, are for whoever follows the link to fear, and a user in front of a host hides it.
func isLink(value []byte) bool {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return false
	}
	link, err := url.Parse(text)
	return err == nil && (link.Scheme == "https" || link.Scheme == "http") && link.Hostname() != "" && link.User == nil
}
