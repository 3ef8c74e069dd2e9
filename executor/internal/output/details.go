package output

import (
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// detailBytes is the approximate size of the numbers and names in a denial or a host call.
const detailBytes = 128

// CutDetails shortens a record's denials, host calls and log to about limit bytes together: the denials to the first
// that fit in half of the bytes, the host calls to the first that fit in half of the rest, and the log, which gets the
// remaining bytes, to its beginning and its end. Lists and logs that fit are not changed, and memory that the record
// shares is not written to.
func CutDetails(record *tool.Record, limit int) {
	room := limit
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

// cutLog returns the beginning and the end of a log that is longer than limit bytes, with the note between them that
// package runtime writes where it cuts a log. A trap's stack is at the end of the log.
func cutLog(log string, limit int) string {
	if len(log) <= limit {
		return log
	}
	first, last := runeBefore(log, limit/4), runeAfter(log, len(log)-limit/4*3)
	note := fmt.Sprintf("\n[cut after %d bytes: %d bytes left out]\n", first, last-first)
	return strings.Join([]string{log[:first], log[last:]}, note) // no part of the whole is held
}
