package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/internal/records"
	"github.com/caisson-run/caisson/tool"
)

// The parts of a result, beside those of its content.
const (
	partOutput = "output"
	partError  = "error"
	partData   = "data"
)

// pageOptions says which piece of what a call returned is printed.
type pageOptions struct {
	output bool
	part   string // empty: the output, or the data where there is none
	from   int64  // the first byte
	bytes  bytesFlag
}

func (p *pageOptions) flags(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVar(&p.output, "output", false, "print what the call returned, and nothing about the call")
	flags.StringVar(&p.part, "part", "", "with --output: print this `PART`: output, error, data, or a part of the content such as 'content[0]'")
	flags.Int64Var(&p.from, "from", 0, "with --output: print from byte `N` on")
	flags.Var(&p.bytes, "bytes", "with --output: print a `SIZE` such as 32KiB at most (default: all)")
}

// check refuses flags that say nothing without --output.
func (p *pageOptions) check(command *cobra.Command) error {
	for _, name := range []string{"part", "from", "bytes"} {
		if command.Flags().Changed(name) && !p.output {
			return usageError(command, "--"+name+" needs --output")
		}
	}
	if p.from < 0 {
		return usageError(command, fmt.Sprintf("--from %d: want 0 or more", p.from))
	}
	return nil
}

// printPage prints a piece of what a call returned, in the form of a [tool.Page] as JSON.
func (o *options) printPage(env environment, entry records.Entry, p pageOptions) error {
	result, id := entry.Result(), entry.Record.CallID
	if p.part == "" {
		p.part = partOutput
		if result.Output == "" && len(result.Data) > 0 {
			p.part = partData
		}
	}
	whole, ok := partOf(result, p.part)
	if !ok {
		return failed(exitUsage, fmt.Sprintf("the call %s returned no %s", id, p.part), partHint(result))
	}
	if p.from > int64(len(whole)) {
		return failed(exitUsage, fmt.Sprintf("--from %d: the %s of the call has %s", p.from, p.part, count(len(whole), "byte")))
	}
	page := pageOf(whole, p.from, int64(p.bytes))
	if o.json {
		page.Reference = referenceOf(id, p.part)
		return env.printJSON(page)
	}
	text := page.Text
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if err := env.print(text); err != nil {
		return err
	}
	if page.Next >= 0 && !o.quiet {
		printHint(env.stderr, fmt.Sprintf("%d of %d bytes follow; read on with %s", page.Total-page.Next, page.Total, o.outputCommand(id, p.part, page.Next)))
	}
	return nil
}

// referenceOf names a part of a call's result as [tool.Cut] does: the output by the call's id
// alone.
func referenceOf(id, part string) string {
	if part == partOutput {
		return id
	}
	return id + "." + part
}

// partHint names the parts that a result has.
func partHint(result tool.Result) string {
	var parts []string
	for _, part := range []string{partOutput, partError, partData} {
		if _, ok := partOf(result, part); ok {
			parts = append(parts, part)
		}
	}
	for i := range result.Content {
		parts = append(parts, fmt.Sprintf("content[%d]", i))
	}
	if len(parts) == 0 {
		return "it returned nothing at all"
	}
	return "name one that it did with --part: " + strings.Join(parts, ", ")
}

// contentPart is the name of a part of the content, or with a colon of all from that one on.
var contentPart = regexp.MustCompile(`^content\[(\d{1,9})(:?)\]$`)

// partOf returns a part of a result as text, and false for one that it does not have.
func partOf(result tool.Result, part string) (string, bool) {
	switch part {
	case partOutput:
		return result.Output, result.Output != ""
	case partError:
		return result.Error, result.Error != ""
	case partData:
		return string(result.Data), len(result.Data) > 0
	}
	match := contentPart.FindStringSubmatch(part)
	if match == nil {
		return "", false
	}
	at, _ := strconv.Atoi(match[1]) // it has digits, and not many
	if at >= len(result.Content) {
		return "", false
	}
	if match[2] != "" {
		return wireText(result.Content[at:]), true
	}
	if c := result.Content[at]; c.Type == "text" {
		return c.Text, true
	}
	return wireText(result.Content[at]), true
}

// wireText returns parts of the content as they are written in a result, binary data in base64.
func wireText(content any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(content) // text and bytes all have a form in JSON
	return strings.TrimSuffix(b.String(), "\n")
}

// pageOf returns so many bytes of a text, all for zero, that begin with the first character
// from a byte on and end between two. There is one character in any case.
func pageOf(whole string, from, most int64) tool.Page {
	begin := int(from)
	for begin < len(whole) && !utf8.RuneStart(whole[begin]) {
		begin++
	}
	end := len(whole)
	if rest := int64(end - begin); most > 0 && most < rest {
		end = begin + int(most)
		for end > begin && !utf8.RuneStart(whole[end]) {
			end--
		}
		if end == begin {
			_, size := utf8.DecodeRuneInString(whole[begin:])
			end += size
		}
	}
	page := tool.Page{Text: whole[begin:end], From: int64(begin), Next: int64(end), Total: int64(len(whole))}
	if end == len(whole) {
		page.Next = -1
	}
	return page
}
