//go:build wasip1

// Command conformance is the tools that the conformance suite of the Model Context Protocol calls. Its
// argument says which of them it is.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/caisson-run/caisson/internal/guests/script"
	caisson "github.com/caisson-run/caisson/sdk/go"
)

type part struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	Data     []byte `json:"data,omitempty"`
	URL      string `json:"url,omitempty"`
	MIMEType string `json:"mime_type,omitempty"`
}

type result struct {
	Success bool   `json:"success"`
	Output  string `json:"output,omitempty"`
	Error   string `json:"error,omitempty"`
	Content []part `json:"content,omitempty"`
}

var (
	// pixel is a PNG of one red pixel.
	pixel = part{Type: "image", MIMEType: "image/png",
		Data: []byte(
			"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02" +
				"\x00\x00\x00\x90wS\xde\x00\x00\x00\x0cIDATx\x9cc\xf8" +
				"\xcf\xc0\x00\x00\x03\x01\x01\x00\xc9\xfe\x92\xef\x00\x00\x00\x00IEND\xaeB`\x82")}
	// silence is a WAV without a sample.
	silence = part{Type: "file", MIMEType: "audio/wav",
		Data: []byte(
			"RIFF$\x00\x00\x00WAVEfmt " +
				"\x10\x00\x00\x00\x01\x00\x01\x00@\x1f\x00\x00@\x1f\x00\x00\x01\x00\x08\x00data\x00\x00\x00\x00")}
)

func main() {
	answer, err := do(os.Args[1])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(answer)
	}
	if err != nil {
		script.Fail(err)
	}
}

func do(name string) (result, error) {
	done := result{Success: true}
	switch name {
	case "simple_text":
		done.Output = "This is a simple text response for testing."
	case "image_content":
		done.Content = []part{pixel}
	case "audio_content":
		done.Content = []part{silence}
	case "embedded_resource":
		done.Content = []part{{Type: "file", URL: "test://embedded-resource", MIMEType: "text/plain",
			Text: "This is an embedded resource content."}}
	case "multiple_content_types":
		done.Output = "Multiple content types test:"
		done.Content = []part{pixel, {Type: "file", URL: "test://mixed-content-resource", MIMEType: "application/json",
			Text: `{"test":"data","value":123}`}}
	case "error_handling":
		return result{Error: "This tool intentionally returns an error for testing"}, nil
	case "tool_with_logging":
		for _, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			if err := caisson.EmitText(text); err != nil {
				return done, err
			}
			time.Sleep(50 * time.Millisecond)
		}
		done.Output = "The tool has logged."
	case "logging":
		if err := caisson.EmitText("The tool has begun."); err != nil {
			return done, err
		}
		done.Output = "The tool has logged."
	case "tool_with_progress":
		for _, fraction := range []float64{0, 0.5, 1} {
			if err := caisson.EmitProgress(fraction, fmt.Sprintf("Completed %.0f of 100", 100*fraction)); err != nil {
				return done, err
			}
			time.Sleep(50 * time.Millisecond)
		}
		done.Output = "The tool has told its progress."
	case "slow":
		for i := range 100 {
			if err := caisson.EmitProgress(float64(i)/100, ""); err != nil {
				return done, err
			}
			time.Sleep(50 * time.Millisecond)
		}
		done.Output = "The tool has ended."
	case "anything":
		done.Output = "anything"
	default:
		return done, fmt.Errorf("there is no tool %q", name)
	}
	return done, nil
}
