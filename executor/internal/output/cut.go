// Package output decides how much of a tool's result goes to a model, and keeps what does
// not for a session, so that it can be read page by page.
//
//	store, err := output.NewStore(16 << 20)
//	result, cuts := output.Cut(result, 32<<10, store.Keeper(reference), mark)
//	page, err := store.Page(cuts[0].Reference, 0, 0)
//
// # Room
//
// A result that fits is not changed. Otherwise room is given to the parts in the order error,
// output, data, content: the error is what a model acts on. Each part takes what the
// parts after it do not need, and is guaranteed a share: error half of the room, output three
// quarters of what error leaves, data half of what output leaves, or the output's share if there
// is no output. So a long output does not displace a small value, nor the other way round.
//
// Text is cut at its end, between characters, and the mark follows on a line of its own.
// data is JSON and is kept whole or dropped; the output then ends with its mark. If the
// output is just data as text, one of them is enough: data alone if it fits, which
// is no cut, and otherwise the cut output.
//
// Parts of the content share their room evenly, and what small ones leave goes to the others.
// A part with binary data is kept whole or replaced by a text part that describes it. One such
// text part stands for all parts for which there is no room.
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

// Mark is the note that tells a model what was cut. It should be at most 200 bytes long, since it must fit into
// [placeBytes].
type Mark func(tool.Cut) string

// Cut returns the result with at most most bytes, as [tool.Result.Size] counts them, and the parts that were
// cut. Marks count, and so do 16 bytes for each part of the content, which Size leaves out. All text
// is valid UTF-8 afterwards, with U+FFFD for what was not, and wholes are kept in that form.
//
// A result that fits and is valid is returned unchanged, without an allocation, so that cutting
// again with the same or a larger bound changes nothing. The given result is never written to.
// A mark that does not fit is truncated.
//
// A nil keep keeps nothing; mark must not be nil. Parts with binary data are not kept, since no
// model can read them, unless they are among the parts for which there was no room.
func Cut(result tool.Result, most int, keep Keep, mark Mark) (tool.Result, []tool.Cut) {
	makeValid(&result)
	if size(&result) <= most {
		return result, nil
	}
	c := cutter{keep: keep, mark: mark}
	c.cut(&result, max(most, 0))
	return result, c.cuts
}

type cutter struct {
	keep Keep
	mark Mark
	cuts []tool.Cut
}

func (c *cutter) cut(r *tool.Result, room int) {
	whole := r.Output
	echo := isText(r.Data, whole)
	if echo {
		r.Output = ""
	}
	content := contentSize(r.Content)
	r.Error = c.text("error", r.Error, share(room, room/2, len(r.Output)+len(r.Data)+content))
	room -= len(r.Error)

	switch data := string(r.Data); {
	case dataFits(r, room, content):
		r.Output = c.text("output", r.Output, share(room, room/4*3, len(data)+content))
	case echo:
		r.Data = nil
		r.Output = c.text("output", whole, share(room, room/4*3, content))
		// The output's whole serves for data too.
		gone := c.cuts[len(c.cuts)-1]
		gone.Part, gone.Kept = "data", 0
		c.cuts = append(c.cuts, gone)
	default:
		r.Data = nil
		r.Output = c.outputForData(r.Output, data, share(room, room/4*3, content))
	}
	r.Content = c.content(r.Content, room-len(r.Output)-len(r.Data))
}

// share is the room that a part may take: what the parts after it do not need, but at least its guaranteed share.
func share(room, sure, behind int) int { return max(sure, room-behind) }

// dataFits reports whether data fits beside as much of the output as will be left. Without an output, data has
// the output's room: an output that echoes data that does not fit is then certain to be cut.
func dataFits(r *tool.Result, room, content int) bool {
	if r.Output == "" {
		return len(r.Data) <= share(room, room/4*3, content)
	}
	room -= min(len(r.Output), share(room, room/4*3, len(r.Data)+content))
	return len(r.Data) <= share(room, room/2, content)
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
	return c.shorten(c.cutOf(part, text), text, room, "")
}

// outputForData returns the output with the mark of data, which was dropped.
func (c *cutter) outputForData(text, data string, room int) string {
	own := tool.Cut{Part: "output"}
	cut := len(text) > room
	if cut {
		own = c.cutOf("output", text)
	}
	gone := c.cutOf("data", data)
	also := c.sentence(gone)
	if whole := join(text, also); !cut && len(whole) <= room {
		c.cuts = append(c.cuts, gone)
		return whole
	}
	switch {
	case text == "":
		text = head(also, room)
	case cut:
		text = c.shorten(own, text, room, also)
	default:
		text = c.shorten(c.cutOf("output", text), text, room, also)
	}
	c.cuts = append(c.cuts, gone)
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

// shorten cuts the text so that it fits into the room with its mark and also. The latter is left out if both
// would take more than half of the room.
func (c *cutter) shorten(cut tool.Cut, text string, room int, also string) string {
	text, cut.Kept = fit(text, room, func(kept int64) string {
		cut.Kept = kept
		mark := c.sentence(cut)
		if both := join(mark, also); also != "" && len(both) <= room/2 {
			return both
		}
		return mark
	})
	c.cuts = append(c.cuts, cut)
	return text
}

func (c *cutter) sentence(cut tool.Cut) string { return validText(c.mark(cut)) }
