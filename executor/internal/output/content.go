package output

import (
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/tool"
)

const (
	// placeBytes bounds a part that describes a dropped one.
	placeBytes = 512
	// maxNameShown bounds the name and the type, in bytes, in the description of a part.
	maxNameShown = 64
)

// content returns the parts in at most room bytes. One description replaces the last parts if there is no more room.
func (c *cutter) content(parts []tool.Content, room int) []tool.Content {
	if contentSize(parts) <= room {
		return parts
	}
	n, left := places(parts, room)
	gone, level := levelOut(parts[:n], left)
	kept := make([]tool.Content, 0, n+1)
	for i := range parts[:n] {
		p := &parts[i]
		switch {
		case gone[i]:
			cut := tool.Cut{Part: partName(i), Bytes: int64(len(p.Data))} // binary data is not kept
			kept = c.appendPlaceholder(kept, cut, describe(p), min(level, placeBytes))
		case partSize(p) <= level:
			kept = append(kept, *p)
		case aboutSize(p) <= level/2:
			short := *p
			short.Text = c.text(partName(i), p.Text, level-aboutSize(p))
			kept = append(kept, short)
		default: // such as a link with a very long URL
			kept = c.appendPlaceholder(kept, c.cutOf(partName(i), wire(p)), describe(p), min(level, placeBytes))
		}
	}
	if n < len(parts) {
		kept = c.appendRest(kept, parts[n:], n, min(room, placeBytes))
	}
	return kept
}

// places returns how many parts can be kept or described each, and the room that they share.
func places(parts []tool.Content, room int) (n, left int) {
	need := 0 // the minimum for the parts so far
	fitting := 0
	for i := range parts {
		need += min(partSize(&parts[i]), placeBytes)
		if need > room {
			return fitting, max(0, room-placeBytes)
		}
		if need <= room-placeBytes {
			fitting = i + 1
		}
	}
	return len(parts), room
}

// levelOut returns which parts with binary data are dropped, and the size that no other part may exceed.
func levelOut(parts []tool.Content, room int) (gone []bool, level int) {
	sizes := make([]int, len(parts))
	for i := range parts {
		sizes[i] = partSize(&parts[i])
	}
	level = levelOf(sizes, room)
	gone = make([]bool, len(parts))
	for i := range parts {
		if gone[i] = len(parts[i].Data) > 0 && sizes[i] > level; gone[i] {
			sizes[i] = min(sizes[i], placeBytes)
		}
	}
	// The room of dropped parts goes to the remaining ones.
	return gone, levelOf(sizes, room)
}

// levelOf returns the largest level for which the sizes, each capped at the level, fit into the room.
func levelOf(sizes []int, room int) int {
	sorted := slices.Sorted(slices.Values(sizes))
	for i, size := range sorted {
		if even := room / (len(sorted) - i); size > even {
			return even
		}
		room -= size
	}
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)-1] + room
}

func partName(i int) string { return fmt.Sprintf("content[%d]", i) }

// appendRest appends one description for all parts that have no room.
func (c *cutter) appendRest(kept []tool.Content, parts []tool.Content, from, room int) []tool.Content {
	about := fmt.Sprintf("%d more parts", len(parts))
	if len(parts) == 1 {
		about = describe(&parts[0])
	}
	return c.appendPlaceholder(kept, c.cutOf(fmt.Sprintf("content[%d:]", from), wire(parts)), about, room)
}

// appendPlaceholder appends a text part that describes dropped parts.
func (c *cutter) appendPlaceholder(kept []tool.Content, cut tool.Cut, about string, room int) []tool.Content {
	c.cuts = append(c.cuts, cut)
	part := tool.Content{Type: "text"}
	room -= aboutSize(&part)
	if room <= 0 {
		return kept
	}
	mark := c.sentence(cut)
	about = head(about, room-len("\n")-len(mark)) // the reader acts on the mark, so that comes first
	part.Text = head(join(about, mark), room)
	return append(kept, part)
}

func describe(p *tool.Content) string {
	text := tool.Shown(p.Type, maxNameShown)
	if p.Name != "" {
		text += " " + tool.Shown(p.Name, maxNameShown)
	}
	if len(p.Data) == 0 {
		return text
	}
	kind := ""
	if p.MIMEType != "" {
		kind = tool.Shown(p.MIMEType, maxNameShown) + ", "
	}
	return fmt.Sprintf("%s (%s%d bytes)", text, kind, len(p.Data))
}

// wire returns the JSON of parts as in a result, with binary data in base64.
func wire(parts any) string {
	text, err := jsontext.Encode(parts)
	if err != nil {
		panic(err) // text and bytes always have a JSON form
	}
	return string(text)
}
