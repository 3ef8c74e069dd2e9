package output

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/tool"
)

// detailBytes is about what the numbers and names of a denial or a host call take.
const detailBytes = 128

// CutDetails shortens what a record has beside its result to about most bytes: its denials to the first that fit in
// half of them, its host calls to the first that fit in half of the rest, and its log, which has what is left, to its
// beginning and its end. What fits is not changed, and what the record shares with others is not written to.
func CutDetails(record *tool.Record, most int) {
	room := most
	record.Denials, room = firstOf(record.Denials, room, func(d *tool.Denial) int {
		return detailBytes + len(d.Value) + len(d.Rule) + len(d.Allow.Manifest) + len(d.Allow.Grant)
	})
	record.HostCalls, room = firstOf(record.HostCalls, room, func(c *tool.HostCall) int {
		return detailBytes + len(c.Target) + len(c.Status)
	})
	record.Log = cutLog(record.Log, room)
}

// firstOf returns the first elements that fit in half of the room, and the room that they leave.
func firstOf[T any](list []T, room int, size func(*T) int) (first []T, left int) {
	left = room
	for i := range list {
		if left -= size(&list[i]); left < room/2 {
			return list[:i:i], left + size(&list[i])
		}
	}
	return list, left
}

// cutLog returns the beginning and the end of a log that is longer than most bytes, with the note between them that
// package runtime writes where it cuts a log. A trap's stack stands at the end.
func cutLog(log string, most int) string {
	if len(log) <= most {
		return log
	}
	first, last := most/4, len(log)-most/4*3
	for first > 0 && !utf8.RuneStart(log[first]) {
		first--
	}
	for last < len(log) && !utf8.RuneStart(log[last]) {
		last++
	}
	note := fmt.Sprintf("\n[cut after %d bytes: %d bytes left out]\n", first, last-first)
	return strings.Join([]string{log[:first], log[last:]}, note) // no part of the whole is held
}
