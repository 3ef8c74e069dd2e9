//go:build wasip1

// Command streamprobe is the guest of the tests of what a call says before it has ended: it does
// what its input says, step by step, and prints what came of each, unless a step prints its result.
// With an argument, emit or context, it calls that function before it reads its input.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	caisson "github.com/caisson-run/caisson/sdk/go"
)

// step is one thing to do.
type step struct {
	// Do is text, json, progress, image, link, raw, flood, context, read, sleep, spin, print or fail.
	Do       string          `json:"do"`
	Text     string          `json:"text"`     // to say or to print; the request, for raw and flood; the path, for read
	Data     json.RawMessage `json:"data"`     // for json
	Fraction float64         `json:"fraction"` // for progress
	Image    []byte          `json:"image"`    // for image
	MIMEType string          `json:"mime_type"`
	Partial  bool            `json:"partial"`
	URL      string          `json:"url"`    // for link
	Count    int             `json:"count"`  // for flood; negative: without end
	Millis   int             `json:"millis"` // for sleep
}

func main() {
	var done []any
	for _, early := range os.Args[1:] {
		done = append(done, step{Do: early, Text: "early"}.run())
	}
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		fail(err)
	}
	var todo struct {
		Steps []step `json:"steps"`
	}
	if err := json.Unmarshal(input, &todo); err != nil {
		fail(err)
	}
	for _, s := range todo.Steps {
		if s.Do == "print" {
			fmt.Print(s.Text)
			return
		}
		done = append(done, s.run())
	}
	if err := json.NewEncoder(os.Stdout).Encode(done); err != nil {
		fail(err)
	}
}

func (s step) run() any {
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
		content, err := os.ReadFile(s.Text)
		if err != nil {
			return err.Error()
		}
		return string(content)
	case "sleep":
		time.Sleep(time.Duration(s.Millis) * time.Millisecond)
		return "slept"
	case "spin":
		for {
			turns++
		}
	case "fail":
		fail(errors.New("as asked"))
	}
	fail(fmt.Errorf("cannot do %q", s.Do))
	return nil
}

// turns keeps the compiler from leaving out what spins.
var turns int

// ended is how an emission ended, in a sentence.
func ended(err error) string {
	if err == nil {
		return "ok"
	}
	return err.Error()
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
