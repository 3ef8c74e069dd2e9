package pieces

import (
	"fmt"
	"maps"
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
	return remark("calls without an id were given one, which their results have: %s", calls, func(call tool.Call) string {
		return fmt.Sprintf("%s (%s)", tool.Shown(call.Function.Name, 64), call.ID)
	})
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
	return remark("calls have the same id, so only the order tells their results apart: %s", ids, func(id string) string {
		return fmt.Sprintf("%s (%d calls)", tool.Shown(id, 64), times[id])
	})
}

// Unread returns the remark about calls in alternatives to the first choice, or candidate; nil for none. The
// alternatives are given by their index, in any order.
func Unread(kind string, indexes map[int64]bool) []string {
	return remark("only the first "+kind+" is read, but there are calls in %s, too", slices.Sorted(maps.Keys(indexes)),
		func(index int64) string { return fmt.Sprintf("%s %d", kind, index) })
}

// remark returns the remark about a list; nil for an empty one. The names of the first elements and the number of the
// remaining ones replace the %s in the format.
func remark[T any](format string, list []T, name func(T) string) []string {
	if len(list) == 0 {
		return nil
	}
	var named []string
	for _, element := range list[:min(len(list), maxNamed)] {
		named = append(named, name(element))
	}
	if more := len(list) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("and %d more", more))
	}
	return []string{fmt.Sprintf(format, strings.Join(named, ", "))}
}

// Reason returns the remark about what the provider did, such as to end the response, and for which reason. message
// explains the reason; it may be empty.
func Reason(did, reason, message string) string {
	remark := fmt.Sprintf("the provider %s with the reason %s", did, tool.Shown(reason, 64))
	if message != "" {
		remark += ": " + tool.Shown(message, 512)
	}
	return remark
}
