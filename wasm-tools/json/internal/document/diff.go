package document

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// maxComparisons bounds the pairs of elements compared to find the common elements of arrays. Beyond it, elements are
// compared by their position.
const maxComparisons = 4 << 20

// Diff returns a JSON Patch (RFC 6902) that changes a document to the target. It is empty if they are equal; the order
// of members makes no difference. Where so much differs that this is less than half as long, it replaces the value that
// holds the differences.
func Diff(n, target *Node) *Node {
	d := differ{classes: map[string]int{}, known: map[*Node]int{}, budget: maxComparisons}
	operations, _ := d.diff(n, target, "")
	return NewArray(operations...)
}

// differ numbers the classes of equal values, so that it looks at each value once.
type differ struct {
	classes map[string]int
	known   map[*Node]int
	budget  int
}

// class returns a number that equal values share.
func (d *differ) class(n *Node) int {
	if class, found := d.known[n]; found {
		return class
	}
	var key strings.Builder
	switch n.Kind {
	case jsontext.Array:
		key.WriteByte('[')
		for _, element := range n.Elements {
			fmt.Fprintf(&key, "%d,", d.class(element))
		}
	case jsontext.Object:
		members := slices.Clone(n.Members)
		slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
		key.WriteByte('{')
		for _, member := range members {
			fmt.Fprintf(&key, "%q%d,", member.Name, d.class(member.Value))
		}
	case jsontext.String:
		content := n.String()
		key.WriteString(`"` + content)
		if strings.ContainsRune(content, '\uFFFD') { // see sameString
			key.WriteString(n.Text)
		}
	case jsontext.Number:
		number := decimalOf(n.Text)
		fmt.Fprintf(&key, "#%d,%s,%d", number.sign, number.digits, number.exponent)
	default:
		key.WriteString(n.Text)
	}
	class, found := d.classes[key.String()]
	if !found {
		class = len(d.classes)
		d.classes[key.String()] = class
	}
	d.known[n] = class
	return class
}

// diff returns the operations that make one value of another at a path, and their length.
func (d *differ) diff(n, target *Node, path string) (operations []*Node, size int) {
	if d.class(n) == d.class(target) {
		return nil, 0
	}
	whole := operation("replace", path, target)
	switch {
	case n.Kind == jsontext.Object && target.Kind == jsontext.Object:
		operations, size = d.members(n, target, path)
	case n.Kind == jsontext.Array && target.Kind == jsontext.Array:
		operations, size = d.elements(n.Elements, target.Elements, path)
	default:
		return []*Node{whole}, whole.bytes()
	}
	if replaced := whole.bytes(); 2*replaced < size { // what differs is worth showing
		return []*Node{whole}, replaced
	}
	return operations, size
}

func (d *differ) members(n, target *Node, path string) (operations []*Node, size int) {
	add := func(more []*Node, length int) { operations, size = append(operations, more...), size+length }
	before, after := n.byName(), target.byName()
	for _, member := range n.Members {
		place := path + "/" + Step{Name: member.Name}.String()
		if value := after[member.Name]; value != nil {
			add(d.diff(member.Value, value, place))
		} else {
			add(one(operation("remove", place, nil)))
		}
	}
	for _, member := range target.Members {
		if before[member.Name] == nil {
			add(one(operation("add", path+"/"+Step{Name: member.Name}.String(), member.Value)))
		}
	}
	return operations, size
}

func (d *differ) elements(from, to []*Node, path string) (operations []*Node, size int) {
	place := func(index int) string { return path + "/" + Step{Index: index, IsIndex: true}.String() }
	add := func(more []*Node, length int) { operations, size = append(operations, more...), size+length }
	at, i, j := 0, 0, 0
	// upTo makes to[j:toEnd] of from[i:fromEnd], which have nothing in common.
	upTo := func(fromEnd, toEnd int) {
		for ; i < fromEnd && j < toEnd; i, j, at = i+1, j+1, at+1 {
			add(d.diff(from[i], to[j], place(at)))
		}
		for ; i < fromEnd; i++ {
			add(one(operation("remove", place(at), nil)))
		}
		for ; j < toEnd; j, at = j+1, at+1 {
			add(one(operation("add", place(at), to[j])))
		}
	}
	for _, pair := range d.common(from, to) {
		upTo(pair[0], pair[1])
		i, j, at = i+1, j+1, at+1
	}
	upTo(len(from), len(to))
	return operations, size
}

// common returns the indexes of a longest common subsequence, in order.
func (d *differ) common(from, to []*Node) (pairs [][2]int) {
	x, y := d.classesOf(from), d.classesOf(to)
	start := 0
	for start < len(x) && start < len(y) && x[start] == y[start] {
		pairs = append(pairs, [2]int{start, start})
		start++
	}
	end := 0
	for end < len(x)-start && end < len(y)-start && x[len(x)-1-end] == y[len(y)-1-end] {
		end++
	}
	inner, others := x[start:len(x)-end], y[start:len(y)-end]
	if cells := (len(inner) + 1) * (len(others) + 1); len(inner) > 0 && len(others) > 0 && cells <= d.budget {
		d.budget -= cells
		width := len(others) + 1
		longest := make([]int32, cells) // of inner[i:] and others[j:]
		for i := len(inner) - 1; i >= 0; i-- {
			for j := len(others) - 1; j >= 0; j-- {
				if inner[i] == others[j] {
					longest[i*width+j] = 1 + longest[(i+1)*width+j+1]
				} else {
					longest[i*width+j] = max(longest[(i+1)*width+j], longest[i*width+j+1])
				}
			}
		}
		for i, j := 0, 0; i < len(inner) && j < len(others); {
			switch {
			case inner[i] == others[j]:
				pairs = append(pairs, [2]int{start + i, start + j})
				i, j = i+1, j+1
			case longest[(i+1)*width+j] >= longest[i*width+j+1]:
				i++
			default:
				j++
			}
		}
	}
	for ; end > 0; end-- {
		pairs = append(pairs, [2]int{len(x) - end, len(y) - end})
	}
	return pairs
}

func (d *differ) classesOf(elements []*Node) []int {
	classes := make([]int, len(elements))
	for i, element := range elements {
		classes[i] = d.class(element)
	}
	return classes
}

// operation returns an operation of a patch. Removing has no value.
func operation(name, path string, value *Node) *Node {
	o := NewObject()
	o.add("op", NewString(name))
	o.add("path", NewString(path))
	if value != nil {
		o.add("value", value)
	}
	return o
}

func one(operation *Node) ([]*Node, int) { return []*Node{operation}, operation.bytes() + 1 }
