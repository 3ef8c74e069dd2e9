package pieces

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// maxNamed limits the calls that a remark names.
const maxNamed = 8

// FillIDs gives calls without an id one derived from their position, "call_0", so that results can be
// matched. The same calls get the same ids every time. It returns remarks about that, and those of [Repeated].
func FillIDs(calls []tool.Call) (remarks []string) {
	taken := make(map[string]bool, len(calls))
	for _, call := range calls {
		taken[call.ID] = true
	}
	var filled []tool.Call
	for i := range calls {
		if calls[i].ID == "" {
			calls[i].ID = Free(taken, i)
			filled = append(filled, calls[i])
		}
	}
	return append(Filled(filled), Repeated(calls)...)
}

// Filled returns the remark about calls that were given an id; nil for none.
func Filled(calls []tool.Call) []string {
	if len(calls) == 0 {
		return nil
	}
	var named []string
	for _, call := range calls[:min(len(calls), maxNamed)] {
		named = append(named, fmt.Sprintf("%s (%s)", tool.Shown(call.Function.Name, 64), call.ID))
	}
	return []string{"calls without an id were given one, which their results have: " + listed(named, len(calls))}
}

// Repeated returns the remark about calls with the same id; nil for none.
func Repeated(calls []tool.Call) []string {
	times := make(map[string]int, len(calls))
	var ids []string
	for _, call := range calls {
		if times[call.ID]++; times[call.ID] == 2 {
			ids = append(ids, call.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var named []string
	for _, id := range ids[:min(len(ids), maxNamed)] {
		named = append(named, fmt.Sprintf("%s (%d calls)", tool.Shown(id, 64), times[id]))
	}
	return []string{"calls have the same id, so only the order tells their results apart: " + listed(named, len(ids))}
}

// Unread returns the remark about calls in alternatives to the first choice, or candidate; nil for none. The
// alternatives are given by their index, in any order.
func Unread(kind string, indexes map[int64]bool) []string {
	if len(indexes) == 0 {
		return nil
	}
	var sorted []int64
	for index := range indexes {
		sorted = append(sorted, index)
	}
	slices.Sort(sorted)
	var named []string
	for _, index := range sorted[:min(len(sorted), maxNamed)] {
		named = append(named, fmt.Sprintf("%s %d", kind, index))
	}
	return []string{fmt.Sprintf("only the first %s is read, but there are calls in %s, too", kind,
		listed(named, len(sorted)))}
}

// Ended returns the remark about why the provider ended a response, with its message, if there is one.
func Ended(reason, message string) string {
	return said("the provider ended the response with the reason ", reason, message)
}

// Blocked returns the remark about a prompt to which the provider gives no response.
func Blocked(reason, message string) string {
	return said("the provider blocked the prompt with the reason ", reason, message)
}

func said(what, reason, message string) string {
	what += tool.Shown(reason, 64)
	if message != "" {
		what += ": " + tool.Shown(message, 512)
	}
	return what
}

// listed joins the names of the first elements of a list, and adds the number of the remaining ones.
func listed(named []string, all int) string {
	if more := all - len(named); more > 0 {
		named = append(named, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(named, ", ")
}
