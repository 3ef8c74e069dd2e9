//go:build wasip1

// Command probe is the guest of the runtime's tests: it does what its arguments say,
// from printing to raw WASI calls that no C library would make.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/caisson-run/caisson/internal/guests/script"
)

type request struct {
	Do     string `json:"do"`
	Before string `json:"before"`
	Text   string `json:"text"`
	Times  int    `json:"times"`
	Code   int    `json:"code"`
	Millis int    `json:"millis"`
	MiB    int    `json:"mib"`
	Calls  []raw  `json:"calls"`
}

// counter shows whether an instance has served a call before.
var counter int

// kept keeps allocations alive.
var kept [][]byte

func main() {
	began := time.Now()
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		script.Fail(err)
	}
	var r request
	if len(input) > 0 {
		if err := json.Unmarshal(input, &r); err != nil {
			r = request{Do: "echo"}
		}
	}
	switch r.Do {
	case "", "echo":
		print(map[string]any{"args": os.Args[1:], "environment": os.Environ(), "stdin": string(input)})
	case "print":
		fmt.Print(r.Before)
		for range max(r.Times, 1) {
			fmt.Print(r.Text)
		}
		time.Sleep(time.Until(began.Add(time.Duration(r.Millis) * time.Millisecond)))
	case "log":
		text := strings.Repeat(r.Text, max(r.Times, 1))
		fmt.Fprint(os.Stderr, text)
		time.Sleep(time.Until(began.Add(time.Duration(r.Millis) * time.Millisecond)))
	case "exit":
		fmt.Print(r.Text)
		os.Exit(r.Code)
	case "panic":
		panic(r.Text)
	case "sleep":
		time.Sleep(time.Duration(r.Millis) * time.Millisecond)
		print("slept")
	case "spin":
		for {
			counter++
		}
	case "count":
		counter++
		print(counter)
	case "allocate":
		for range r.MiB {
			block := make([]byte, 1<<20)
			for i := 0; i < len(block); i += 4 << 10 {
				block[i] = 1
			}
			kept = append(kept, block)
		}
		print(len(kept))
	case "raw":
		answers := make([]answer, len(r.Calls))
		for i, c := range r.Calls {
			answers[i] = c.run(answers[:i])
		}
		print(answers)
	default:
		script.Fail(fmt.Errorf("cannot do %q", r.Do))
	}
}

func print(value any) {
	if err := json.NewEncoder(os.Stdout).Encode(value); err != nil {
		script.Fail(err)
	}
}
