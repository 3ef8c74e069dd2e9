package document

import (
	"errors"
	"fmt"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// MergePatch applies a merge patch (RFC 7396) to a document, which it changes and callers must not use afterwards:
// members of the patch replace those of the document, null removes them, and objects are merged.
func MergePatch(n, patch *Node) *Node {
	if patch.Kind != jsontext.Object {
		return patch
	}
	if n == nil || n.Kind != jsontext.Object {
		n = NewObject()
	}
	places := make(map[string]int, len(n.Members))
	for i, member := range n.Members {
		places[member.Name] = i
	}
	removed := map[int]bool{}
	for _, change := range patch.Members {
		at, found := places[change.Name]
		switch {
		case change.Value.Kind == jsontext.Null:
			if found {
				removed[at] = true
			}
		case found:
			n.Members[at].Value = MergePatch(n.Members[at].Value, change.Value)
		default:
			n.Members = append(n.Members, Member{change.Name, change.Quoted, MergePatch(nil, change.Value)})
		}
	}
	kept := n.Members[:0]
	for i, member := range n.Members {
		if !removed[i] {
			kept = append(kept, member)
		}
	}
	clear(n.Members[len(kept):])
	n.Members = kept
	return n
}

// errNull means that no merge patch makes the target.
var errNull = errors.New("a merge patch cannot set a member to null, since null removes members there; use diff")

// MergeDiff returns a merge patch that makes the target of a document. There is none if the target has a null that
// would have to be set.
func MergeDiff(n, target *Node) (*Node, error) {
	if target.Kind != jsontext.Object {
		return target, nil
	}
	patch := NewObject()
	before := map[string]*Node{}
	if n.Kind == jsontext.Object {
		before = n.byName()
		after := target.byName()
		for _, member := range n.Members {
			if after[member.Name] == nil {
				patch.Members = append(patch.Members, Member{member.Name, member.Quoted, &Node{Kind: jsontext.Null, Text: "null"}})
			}
		}
	}
	for _, member := range target.Members {
		old := before[member.Name]
		switch {
		case old != nil && Equal(old, member.Value):
			continue
		case member.Value.Kind == jsontext.Null:
			return nil, fmt.Errorf("the member %s: %w", truncate(member.Quoted), errNull)
		case old == nil:
			old = NewObject()
		}
		change, err := MergeDiff(old, member.Value)
		if err != nil {
			return nil, fmt.Errorf("the member %s: %w", truncate(member.Quoted), err)
		}
		patch.Members = append(patch.Members, Member{member.Name, member.Quoted, change})
	}
	return patch, nil
}
