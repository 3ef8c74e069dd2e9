// Early is a guest that does something before it reads its input, so that tests can see whether a call observes the
// early actions of another one. Its argument selects the action; any other argument is printed unchanged. The folders c
// and rust hold the same guest in other languages.
package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

const tenant = "/project/tenant.txt"

func main() {
	text, err := before(os.Args[1])
	if err != nil {
		text = err.Error()
	}
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%s %s", text, input)
}

// before performs the action that the argument names, and returns its result.
func before(what string) (string, error) {
	switch what {
	case "file":
		content, err := os.ReadFile(tenant)
		return string(content), err
	case "stat":
		return size()
	case "list":
		return list()
	case "log":
		_, err := fmt.Fprintln(os.Stderr, "starting")
		return "written", err
	case "print":
		_, err := fmt.Print("early ")
		return "written", err
	case "environment":
		return os.Getenv("SETTING"), nil
	case "clock":
		return clock(), nil
	case "random":
		return fmt.Sprintf("%016x", rand.Uint64()), nil
	case "sleep":
		time.Sleep(time.Millisecond)
		return clock(), nil
	case "exit":
		os.Exit(0)
	}
	return what, nil
}

func size() (string, error) {
	info, err := os.Stat(tenant)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(info.Size()), nil
}

func list() (string, error) {
	entries, err := os.ReadDir("/project")
	var text strings.Builder
	for _, entry := range entries {
		text.WriteString(entry.Name() + ";")
	}
	return text.String(), err
}

func clock() string { return fmt.Sprint(time.Now().UnixNano()) }
