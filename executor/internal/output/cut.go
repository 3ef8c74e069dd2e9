// Package output decides how much of a tool's result goes to a model, and keeps the parts that it cuts
// for the session, so that they can be read page by page.
//
//	store, err := output.NewShared(64 << 20).NewStore(16 << 20)
//	result, cuts := output.Cut(result, 32<<10, store.Keeper(reference), mark)
//	page, err := store.Page(cuts[0].Reference, 0, 0)
//
// # Room
//
// Room is for what a model reads: the error, the output, and the content. Data takes room only if
// a model reads it, in place of an output ([tool.Result.ModelReadsData]); other data is for programs,
// takes no room, and is dropped if it is longer than all of the room.
//
// A result that fits is not changed. Otherwise room is given to the parts in the order error,
// output or data, content: the error is what a model acts on. Each part takes what the parts after
// it do not need, and is guaranteed a share: error half of the room, output or data three quarters of
// what error leaves. So a long output does not displace a small part, nor the other way round.
//
// Text is cut at its end, between characters, and the mark follows on a separate line. Data that
// is cut becomes the beginning of its text, as the output. Data that is dropped has no mark, since
// no model misses it.
//
// Parts of the content share their room evenly, and the room that small ones do not need goes to larger ones.
// A part with binary data is kept whole or replaced by a text part that describes it. A single
// text part describes all parts that have no room.
package output

import (
	"bytes"
	"encoding/json"

	"github.com/caisson-run/caisson/tool"
)

// Keep keeps a whole text and returns the reference by which it can be read, or "" if it was not
// kept. It is called before the mark that names the reference is made, once for each cut part
// that has text, the most important first.
type Keep func(part, text string) (reference string)

// Mark returns the note that tells a model about a cut. It should be at most 200 bytes long, since it must fit into
// [placeBytes].
type Mark func(tool.Cut) string

// Cut returns the result with at most limit bytes for a model, and no longer data, and the parts that
// were cut. Bytes are counted as [tool.Result.Size] does. Marks count, and so do 16 bytes for each part
// of the content, which Size leaves out. All text is valid UTF-8 afterwards, with U+FFFD in place of invalid
// bytes, and wholes are kept in that form.
//
// A result that fits and is valid is returned unchanged, without an allocation, so that cutting
// again with the same or a larger bound changes nothing. The given result is never written to.
// A mark that does not fit is truncated.
//
// A nil keep keeps nothing; mark must not be nil. Parts with binary data are not kept, since no
// model can read them, unless they are among the parts that had no room.
func Cut(result tool.Result, limit int, keep Keep, mark Mark) (tool.Result, []tool.Cut) {
	result = Valid(result)
	if Fits(&result, limit) {
		return result, nil
	}
	c := cutter{keep: keep, mark: mark}
	c.cut(&result, max(limit, 0))
	return result, c.cuts
}

// Fits reports whether Cut returns a valid result unchanged.
func Fits(result *tool.Result, limit int) bool {
	return size(result) <= limit && len(result.Data) <= limit
}

type cutter struct {
	keep Keep
	mark Mark
	cuts []tool.Cut
}

func (c *cutter) cut(r *tool.Result, limit int) {
	room, content := limit, contentSize(r.Content)
	data, isRead := r.Data, r.ModelReadsData()
	said := len(r.Output)
	if isRead {
		said = len(data)
	}
	r.Error = c.text("error", r.Error, share(room, room/2, said+content))
	room -= len(r.Error)
	switch own := share(room, room/4*3, content); {
	case !isRead:
		whole := r.Output
		r.Output = c.text("output", whole, own)
		if len(data) > limit || r.ModelReadsData() { // the latter if there was no room for any output
			r.Data = nil
			c.dropped(data, whole)
		}
	case len(data) > own:
		r.Data, r.Output = nil, c.text("data", string(data), own)
	default:
		room -= len(data)
	}
	r.Content = c.content(r.Content, room-len(r.Output))
}

// share returns the room that a part may take: as much as later parts do not need, but at least the guaranteed share.
func share(room, guaranteed, later int) int { return max(guaranteed, room-later) }

// dropped notes a cut of data that no model reads.
func (c *cutter) dropped(data json.RawMessage, output string) {
	if n := len(c.cuts); n > 0 && c.cuts[n-1].Part == "output" && isText(data, output) {
		gone := c.cuts[n-1] // the output's whole serves for data too
		gone.Part, gone.Kept = "data", 0
		c.cuts = append(c.cuts, gone)
		return
	}
	c.cuts = append(c.cuts, c.cutOf("data", string(data)))
}

// isText reports whether output is just data as text.
func isText(data json.RawMessage, output string) bool {
	if len(data) == 0 || len(output) < len(data) {
		return false
	}
	var compact bytes.Buffer
	return json.Compact(&compact, []byte(output)) == nil && bytes.Equal(compact.Bytes(), data)
}

// text returns a text that fits into the room, and notes the cut if that is not all of it.
func (c *cutter) text(part, text string, room int) string {
	if len(text) <= room {
		return text
	}
	cut := c.cutOf(part, text)
	text, cut.Kept = fit(text, room, func(kept int64) string {
		cut.Kept = kept
		return c.sentence(cut)
	})
	c.cuts = append(c.cuts, cut)
	return text
}

// cutOf keeps the text and returns a cut of all of it.
func (c *cutter) cutOf(part, text string) tool.Cut {
	cut := tool.Cut{Part: part, Bytes: int64(len(text))}
	if c.keep != nil {
		cut.Reference = c.keep(part, text)
	}
	return cut
}

func (c *cutter) sentence(cut tool.Cut) string { return validText(c.mark(cut)) }
