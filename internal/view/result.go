package view

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/tool"
)

// Result returns a result as text for people: its output, or its data if it has no output, and a
// line for each part that is not text. Unless empty, it ends with a newline.
func Result(result tool.Result) string {
	text := result.Output
	if text == "" && len(result.Data) > 0 {
		text = string(result.Data)
	}
	var b strings.Builder
	addLine(&b, text)
	for _, part := range result.Content {
		addLine(&b, readablePart(part))
	}
	return b.String()
}

func addLine(b *strings.Builder, text string) {
	b.WriteString(text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
}

func readablePart(part tool.Content) string {
	switch {
	case part.Type == "text":
		return part.Text
	case part.URL != "":
		return fmt.Sprintf("[%s: %s]", part.Type, part.URL)
	}
	what := part.Type
	if detail := cmp.Or(part.Name, part.MIMEType); detail != "" {
		what += " " + detail
	}
	return fmt.Sprintf("[%s, %d bytes; --json has them]", what, len(part.Data))
}

// shownLog is the maximum number of lines of a tool's log that are shown. A program that crashes may write hundreds.
const shownLog = 20

// Log returns the first lines of what a tool wrote to stderr, or all of them. Each line is prefixed with the tool's
// name, so that none looks like a message of the command.
func Log(name, log string, all bool) string {
	if log = strings.TrimRight(log, "\n"); log == "" {
		return ""
	}
	lines, left := strings.Split(log, "\n"), 0
	if len(lines) > shownLog && !all {
		lines, left = lines[:shownLog], len(lines)-shownLog
	}
	var b strings.Builder
	prefix := terminal.EscapeLine(name) + ": log: "
	for _, line := range lines {
		b.WriteString(prefix + terminal.Escape(line) + "\n")
	}
	if left > 0 {
		fmt.Fprintf(&b, "%s[%s; --verbose shows all]\n", prefix, terminal.Count(left, "more line"))
	}
	return b.String()
}

// PrintedLog returns the part of a log that the tool itself wrote, without space around it, if [Log] has all of that,
// and "" otherwise: the text before the host's notes and, in a log that was cut, after the note about the cut.
func PrintedLog(log string, all bool) string {
	log = "\n" + log
	for _, note := range []string{"\n[left out of the result: ", "\n[trap at]\n"} {
		log, _, _ = strings.Cut(log, note)
	}
	log = strings.TrimPrefix(log, "\n")
	log = strings.TrimRight(log, "\n")
	if strings.Count(log, "\n") >= shownLog && !all {
		return ""
	}
	if _, cut, found := strings.Cut(log, "\n[cut after "); found {
		_, log, _ = strings.Cut(cut, "\n")
	}
	return strings.TrimSpace(log)
}

// theToolSays is before a tool's own words, so that they cannot pass for the host's.
const theToolSays = "the tool says: "

// Failure returns why a call failed, without the part of the tool's log that was printed. The reason of a tool that
// failed is in its own words, except for those that begin with "the tool", which are the host's. The other kinds of
// failures are the host's.
func Failure(result tool.Result, printed string) string {
	if result.Kind == tool.ToolFailed && !strings.HasPrefix(result.Error, "the tool") {
		return theToolSays + result.Error
	}
	return withoutLog(result.Error, printed)
}

// withoutLog returns the text of a failure without the tool's log, if that is quoted at its end: "denied:
// …; the tool exited with code 1: LOG". A long log is quoted from "… " on.
func withoutLog(text, log string) string {
	isHosts := (strings.HasPrefix(text, "the tool ") || strings.HasPrefix(text, "denied: ")) &&
		!strings.HasPrefix(text, theToolSays)
	if log == "" || !isHosts { // only the host's own words quote it
		return text
	}
	for i := range text {
		words, found := strings.CutPrefix(text[i:], ":")
		if !found {
			continue
		}
		words, isEnd := strings.CutPrefix(strings.TrimSpace(words), "… ")
		if words == log || isEnd && words != "" && strings.HasSuffix(log, words) {
			return text[:i]
		}
	}
	return text
}
