// Command text implements text_process: it counts, changes and searches texts. A character is what readers take for
// one: a grapheme cluster of Unicode (UAX #29).
package main

import (
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/wasm-tools/internal/call"
)

// arguments are the tool's arguments. Those that only some operations take are nil if they are absent. Numbers may be
// written as 2.0.
type arguments struct {
	Text        string   `json:"text"`
	Operation   string   `json:"operation"`
	Pattern     *string  `json:"pattern"`
	Regex       *bool    `json:"regex"`
	IgnoreCase  *bool    `json:"ignore_case"`
	Replacement *string  `json:"replacement"`
	Separator   *string  `json:"separator"`
	Descending  *bool    `json:"descending"`
	Language    *string  `json:"language"`
	Offset      *float64 `json:"offset"`
	Limit       *float64 `json:"limit"`
}

// given returns whether each optional argument is present.
func (a arguments) given() map[string]bool {
	return map[string]bool{
		"pattern": a.Pattern != nil, "regex": a.Regex != nil, "ignore_case": a.IgnoreCase != nil,
		"replacement": a.Replacement != nil,
		"separator":   a.Separator != nil, "descending": a.Descending != nil, "language": a.Language != nil,
		"offset": a.Offset != nil, "limit": a.Limit != nil,
	}
}

// operation implements an operation, with the optional arguments that it needs or takes.
type operation struct {
	run          func(a arguments) (call.Result, error)
	needs, takes []string
}

var (
	paged    = []string{"offset", "limit"}
	worded   = []string{"language"}
	matching = []string{"regex", "ignore_case"}
)

var operations = map[string]operation{
	"count":         {run: count},
	"lines":         {run: list(linesOf, "lines"), takes: paged},
	"words":         {run: list(wordsOf, "words"), takes: paged},
	"frequency":     {run: frequency, takes: slices.Concat(paged, []string{"ignore_case"})},
	"upper":         {run: cased, takes: worded},
	"lower":         {run: cased, takes: worded},
	"title":         {run: cased, takes: worded},
	"reverse":       {run: changed(reverse)},
	"trim":          {run: changed(trim)},
	"collapse":      {run: changed(collapse)},
	"dedent":        {run: changed(dedent)},
	"clean":         {run: changed(clean)},
	"slug":          {run: changed(slug)},
	"sort":          {run: sorted, takes: []string{"descending", "ignore_case"}},
	"unique":        {run: unique, takes: []string{"ignore_case"}},
	"join":          {run: join, takes: []string{"separator"}},
	"split":         {run: split, needs: []string{"separator"}, takes: slices.Concat(matching, paged)},
	"slice":         {run: slice, takes: paged},
	"find":          {run: find, needs: []string{"pattern"}, takes: slices.Concat(matching, paged)},
	"replace":       {run: replace, needs: []string{"pattern", "replacement"}, takes: matching},
	"base64_encode": {run: changed(base64Encode)},
	"base64_decode": {run: decoded(base64Decode)},
	"url_encode":    {run: changed(urlEncode)},
	"url_decode":    {run: decoded(urlDecode)},
}

func main() {
	// The collector frees memory in time to stay below the manifest's limit, rather than at twice the live memory.
	debug.SetMemoryLimit(96 << 20)
	call.Main(process)
}

func process(a arguments) (call.Result, error) {
	o, known := operations[a.Operation]
	if !known { // the schema has the list
		return call.Result{}, fmt.Errorf("there is no operation %q", a.Operation)
	}
	given := a.given()
	for _, name := range o.needs {
		if !given[name] {
			return call.Result{}, fmt.Errorf("the operation %s needs %s", a.Operation, name)
		}
	}
	takes := slices.Concat(o.needs, o.takes)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if given[name] && !slices.Contains(takes, name) {
			return call.Result{}, fmt.Errorf("the operation %s takes no %s; it takes %s", a.Operation, name,
				strings.Join(append([]string{"text"}, takes...), ", "))
		}
	}
	return o.run(a)
}

// changed makes an operation of a function from text to text.
func changed(change func(string) string) func(arguments) (call.Result, error) {
	return func(a arguments) (call.Result, error) { return text(change(a.Text)) }
}

// decoded is [changed] for a function that can fail.
func decoded(change func(string) (string, error)) func(arguments) (call.Result, error) {
	return func(a arguments) (call.Result, error) {
		made, err := change(a.Text)
		if err != nil {
			return call.Result{}, err
		}
		return text(made)
	}
}

// maxText bounds a text that an operation makes, in bytes.
const maxText = 1 << 20

var errTooLong = fmt.Errorf("the result would have more than %d bytes; work on parts of the text", maxText)

// text returns a result that is a text.
func text(made string) (call.Result, error) {
	if len(made) > maxText {
		return call.Result{}, errTooLong
	}
	return call.Result{Success: true, Output: made, Data: map[string]any{"text": made, "characters": length(made)}}, nil
}

// Bounds of a page of a list.
const (
	defaultLimit = 1000
	// maxListed bounds the bytes of its items.
	maxListed = 512 << 10
)

// page returns the bounds of the items to show, of a list with a total and of items with sizes in bytes.
func (a arguments) page(total int, size func(int) int) (start, end int, data map[string]any) {
	if a.Offset != nil {
		start = int(min(*a.Offset, float64(total)))
	}
	limit := defaultLimit
	if a.Limit != nil {
		limit = int(*a.Limit)
	}
	bytes := 0
	for end = start; end < total && end-start < limit; end++ {
		if bytes += size(end); bytes > maxListed && end > start {
			break
		}
	}
	data = map[string]any{"count": total}
	if end < total {
		data["next_offset"] = end
	}
	return start, end, data
}

// more returns a line that says where a list continues, or "" at its end.
func more(data map[string]any) string {
	if next, ok := data["next_offset"]; ok {
		return fmt.Sprintf("\n[cut: go on at offset %d of %d]", next, data["count"])
	}
	return ""
}

// list makes an operation of a function that takes a text apart.
func list(of func(string) []string, name string) func(arguments) (call.Result, error) {
	return func(a arguments) (call.Result, error) {
		items := of(a.Text)
		start, end, data := a.page(len(items), func(i int) int { return len(items[i]) + 8 })
		data["items"] = items[start:end]
		return call.Result{Success: true, Output: fmt.Sprintf("%d %s", len(items), name) + shown(items[start:end]) +
			more(data), Data: data}, nil
	}
}

// shown returns items, a line for each.
func shown(items []string) string {
	if len(items) == 0 {
		return ""
	}
	return ":\n" + strings.Join(items, "\n")
}
