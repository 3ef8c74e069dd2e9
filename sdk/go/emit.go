package caisson

import (
	"encoding/json"
	"unicode/utf8"
)

// EmitText shows a piece of text before the call has ended, such as the next line of an answer that
// is long in the making:
//
//	for _, page := range pages {
//		_ = caisson.EmitText(page.Title + "\n")
//	}
//
// What the Emit functions show goes to whoever watches the call, if anybody does. It is neither in
// the call's result nor seen by the model, so a tool prints its result as if it had shown nothing,
// and most have no use for the error: an [*Error] or [ErrOutside]. It is [Invalid] for what makes
// no sense, and [Limit] once the call has shown as much as it may, which is limits.output in its
// manifest: that counts the requests, which are JSON, and images in base64.
//
// Nobody is waited for. Whoever watches slowly misses some of it.
func EmitText(text string) error { return emitText(streamEmit(), text) }

// EmitJSON shows any value that JSON can write, such as a row that was found. It nests at most 63 deep.
func EmitJSON(value any) error { return emitJSON(streamEmit(), value) }

// EmitProgress shows how much is done, from 0 to 1, and what is being done, in a word or two. A
// negative fraction stands for one that is not known; the text may be empty where it is.
//
//	for i, file := range files {
//		_ = caisson.EmitProgress(float64(i)/float64(len(files)), "reading "+file.Name)
//	}
func EmitProgress(fraction float64, text string) error {
	return emitProgress(streamEmit(), fraction, text)
}

// EmitImage shows an image of a media type such as image/png. Partial says that a better one will
// take its place.
func EmitImage(mimeType string, image []byte, partial bool) error {
	return emitImage(streamEmit(), mimeType, image, partial)
}

// EmitLink shows a link to a page, which is http or https; the title may be empty.
func EmitLink(url, title string) error { return emitLink(streamEmit(), url, title) }

type wireEmission struct {
	Type     string   `json:"type"`
	Text     string   `json:"text,omitempty"`
	Data     any      `json:"data,omitempty"`
	Fraction *float64 `json:"fraction,omitempty"`
	MIMEType string   `json:"mime_type,omitempty"`
	Partial  bool     `json:"partial,omitempty"`
}

func emitText(function hostFunction, text string) error {
	return emit(function, wireEmission{Type: "text", Text: text})
}

func emitJSON(function hostFunction, value any) error {
	data, err := encode(value)
	if err != nil {
		return &Error{Op: function.name, Status: Invalid, Message: "the value cannot be written as JSON: " + err.Error()}
	}
	return emit(function, wireEmission{Type: "json", Data: json.RawMessage(data)})
}

func emitProgress(function hostFunction, fraction float64, text string) error {
	e := wireEmission{Type: "progress", Text: text}
	switch {
	case fraction != fraction || fraction > 1: // also what is not a number
		return &Error{Op: function.name, Status: Invalid, Message: "the fraction must be at most 1"}
	case fraction >= 0:
		e.Fraction = &fraction
	}
	return emit(function, e)
}

func emitImage(function hostFunction, mimeType string, image []byte, partial bool) error {
	return emit(function, wireEmission{Type: "image", Data: image, MIMEType: mimeType, Partial: partial})
}

func emitLink(function hostFunction, url, title string) error {
	return emit(function, wireEmission{Type: "link", Data: url, Text: title})
}

func emit(function hostFunction, e wireEmission) error {
	url, _ := e.Data.(string)
	if !utf8.ValidString(e.Text) || !utf8.ValidString(e.MIMEType) || !utf8.ValidString(url) {
		return &Error{Op: function.name, Status: Invalid, Message: "the text must be UTF-8"}
	}
	_, err := function.ask(e, nil)
	return err
}
