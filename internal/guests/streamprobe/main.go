//go:build wasip1

// Command streamprobe is the guest of the tests of emissions and of the call's context. With an
// argument, emit or context, it calls that function before it reads its input.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/caisson-run/caisson/internal/guests/script"
	caisson "github.com/caisson-run/caisson/sdk/go"
)

type step struct {
	// Do is text, json, progress, image, link, raw, flood, context, read, sleep, spin, print or fail.
	Do       string          `json:"do"`
	Text     string          `json:"text"`     // to emit or to print; the request for raw and flood; the path for read
	Data     json.RawMessage `json:"data"`     // for json
	Fraction float64         `json:"fraction"` // for progress
	Image    []byte          `json:"image"`    // for image
	MIMEType string          `json:"mime_type"`
	Partial  bool            `json:"partial"`
	URL      string          `json:"url"`    // for link
	Count    int             `json:"count"`  // for flood; negative: forever
	Millis   int             `json:"millis"` // for sleep
}

func main() {
	var done []any
	for _, early := range os.Args[1:] {
		done = append(done, step{Do: early, Text: "early"}.Run())
	}
	script.Main[step](done...)
}

func (s step) Run() any {
	switch s.Do {
	case "text", "emit":
		return ended(caisson.EmitText(s.Text))
	case "json":
		return ended(caisson.EmitJSON(s.Data))
	case "progress":
		return ended(caisson.EmitProgress(s.Fraction, s.Text))
	case "image":
		return ended(caisson.EmitImage(s.MIMEType, s.Image, s.Partial))
	case "link":
		return ended(caisson.EmitLink(s.URL, s.Text))
	case "raw":
		return raw(s.Text)
	case "flood":
		return flood(s.Text, s.Count)
	case "context":
		call, err := caisson.Context()
		if err != nil {
			return ended(err)
		}
		return call
	case "read":
		return script.ReadFile(s.Text)
	case "sleep":
		time.Sleep(time.Duration(s.Millis) * time.Millisecond)
		return "slept"
	case "spin":
		for {
			turns++
		}
	case "print": // in place of all results
		fmt.Print(s.Text)
		os.Exit(0)
	case "fail":
		script.Fail(errors.New("as asked"))
	}
	script.Fail(fmt.Errorf("cannot do %q", s.Do))
	return nil
}

// turns keeps the compiler from eliminating the loop.
var turns int

// ended describes how an emission ended.
func ended(err error) string {
	if err == nil {
		return "ok"
	}
	return err.Error()
}
