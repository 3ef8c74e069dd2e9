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

// Emission is something that a running call streams: a piece of its output, its progress, or an
// unfinished image. Its JSON is what guests send to caisson:stream@1.
//
// Its content is up to the tool and may include control characters. A program that shows it in a
// terminal or a page must escape it, like a result.
type Emission struct {
	Type EmissionType `json:"type"`
	// Text is a piece of text for [EmitText], a short description such as "searching" for
	// [EmitProgress], and a title for [EmitLink].
	Text string `json:"text,omitempty"`
	// Data is any value for [EmitJSON], a string with the image in base64 for [EmitImage], and a
	// string with the URL for [EmitLink].
	Data json.RawMessage `json:"data,omitempty"`
	// Fraction is the completed fraction, from 0 to 1, for [EmitProgress]; nil if unknown.
	Fraction *float64 `json:"fraction,omitempty"`
	MIMEType string   `json:"mime_type,omitempty"` // of an image, such as image/png
	// Partial is set for an image that a better one will replace.
	Partial bool `json:"partial,omitempty"`
}

// EmissionType is the type of an [Emission].
type EmissionType string

// The types of emissions.
const (
	EmitText     EmissionType = "text"
	EmitJSON     EmissionType = "json"
	EmitProgress EmissionType = "progress"
	EmitImage    EmissionType = "image"
	EmitLink     EmissionType = "link"
)

// MaxEmission is the maximum number of bytes of an emission's text, data and MIME type together.
const MaxEmission = 1 << 20

// Check returns an error, worded for the tool's author, if the emission is invalid. It takes time in
// proportion to the emission's size, and does not look into images.
func (e *Emission) Check() error {
	if size := len(e.Text) + len(e.Data) + len(e.MIMEType); size > MaxEmission {
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
		return e.check("data, the image in base64", e.hasImage(), "data", "mime_type", "partial")
	case EmitLink:
		return e.check("data, the URL of a page: https://… or http://…, without user and password", isLink(e.Data), "data",
			"text")
	}
	return fmt.Errorf("there is no type of emission %q; want text, json, progress, image or link",
		Shown(string(e.Type), 32))
}

// check rejects a missing member that the type needs, or one that it does not use: its author means something else.
func (e *Emission) check(needs string, ok bool, takes ...string) error {
	if !ok {
		return fmt.Errorf("an emission of type %s needs %s", e.Type, needs)
	}
	for _, member := range []struct {
		name  string
		given bool
	}{
		{"text", e.Text != ""}, {"data", e.Data != nil}, {"fraction", e.Fraction != nil}, {"mime_type", e.MIMEType != ""},
		{"partial", e.Partial},
	} {
		if member.given && !slices.Contains(takes, member.name) {
			return fmt.Errorf("an emission of type %s takes no %s", e.Type, member.name)
		}
	}
	return nil
}

// isImageType reports whether a text is a media type of images without parameters: image/ and a subtype whose length
// and characters are those of RFC 6838, section 4.2. Anything else might be unsafe in a header.
func isImageType(text string) bool {
	subtype, ok := strings.CutPrefix(text, "image/")
	return ok && subtype != "" && len(subtype) <= 127 && !strings.ContainsFunc(subtype, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$&-^_.+", r))
	})
}

// hasImage reports whether Data is a string with at least one byte in base64.
func (e *Emission) hasImage() bool {
	var image []byte // base64 in JSON
	err := json.Unmarshal(e.Data, &image)
	return bytes.HasPrefix(e.Data, []byte{'"'}) && err == nil && len(image) > 0
}

// isLink reports whether a JSON value is the URL of a page. Other schemes are dangerous, and users disguise hosts.
func isLink(value []byte) bool {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return false
	}
	link, err := url.Parse(text)
	return err == nil && (link.Scheme == "https" || link.Scheme == "http") && link.Hostname() != "" && link.User == nil
}
