package caisson

import (
	"encoding/json"
	"unicode/utf8"
)

// EmitText streams a piece of text before the call ends, such as the next line of a long answer:
//
//	for _, page := range pages {
//		_ = caisson.EmitText(page.Title + "\n")
//	}
//
// Emissions go to the watchers of the call, if there are any. They are neither part of the result nor
// shown to the model, so a tool prints its result as if it had streamed nothing, and most tools can
// ignore the error. It is an [*Error] or [ErrOutside]: [Invalid] for an invalid emission, and [Limit]
// when the emissions, as JSON with images in base64, exceed limits.output in the tool's manifest.
//
// The functions do not wait for watchers. A slow watcher misses emissions.
func EmitText(text string) error { return emitText(streamEmit(), text) }

// EmitJSON streams any value that can be encoded as JSON, nested at most 63 levels deep.
func EmitJSON(value any) error { return emitJSON(streamEmit(), value) }

// EmitProgress streams how much is done, from 0 to 1, with a short description. A negative fraction
// means that it is unknown; if it is known, the text may be empty.
//
//	for i, file := range files {
//		_ = caisson.EmitProgress(float64(i)/float64(len(files)), "reading "+file.Name)
//	}
func EmitProgress(fraction float64, text string) error {
	return emitProgress(streamEmit(), fraction, text)
}

// EmitImage streams an image with a media type such as image/png. Partial means that a better image will replace it.
func EmitImage(mimeType string, image []byte, partial bool) error {
	return emitImage(streamEmit(), mimeType, image, partial)
}

// EmitLink streams a link to a web page, with the scheme http or https. The title may be empty.
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
	case fraction != fraction || fraction > 1: // also NaN
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
