package document

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// Patch applies the operations of a JSON Patch (RFC 6902) to a document, which it changes and callers must not use
// afterwards. Either all operations succeed or the error names the first one that fails.
func Patch(n, patch *Node) (*Node, error) {
	if patch.Kind != jsontext.Array {
		return nil,
			fmt.Errorf(`a JSON Patch is an array of operations such as {"op": "replace", "path": "/a", "value": 1}, not %s`,
				patch.Noun())
	}
	d := patched{root: n, bytes: n.bytes()}
	for i, operation := range patch.Elements {
		if err := d.apply(operation); err != nil {
			return nil, fmt.Errorf("operation %d of %d: %w", i+1, len(patch.Elements), err)
		}
	}
	if d.root.depth() > MaxDepth {
		return nil, fmt.Errorf("the result nests deeper than %d levels", MaxDepth)
	}
	return d.root, nil
}

// patched is a document between two operations.
type patched struct {
	root *Node
	// bytes is at least the length of the document. It does not shrink.
	bytes int
}

var operations = map[string]func(d *patched, operation *Node, path Pointer) error{
	"add":     (*patched).opAdd,
	"remove":  func(d *patched, _ *Node, path Pointer) error { return second(d.remove(path)) },
	"replace": (*patched).opReplace,
	"move":    (*patched).opMove,
	"copy":    (*patched).opCopy,
	"test":    (*patched).opTest,
}

func second(_ *Node, err error) error { return err }

func (d *patched) apply(operation *Node) error {
	if operation.Kind != jsontext.Object {
		return fmt.Errorf("it is %s, not an object with op and path", operation.Noun())
	}
	name, err := text(operation, "op")
	if err != nil {
		return err
	}
	run := operations[name]
	if run == nil {
		return fmt.Errorf("op is %q; write add, remove, replace, move, copy or test", truncate(name))
	}
	path, err := pointerIn(operation, "path")
	if err == nil {
		err = run(d, operation, path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", strings.TrimSpace(name+" "+truncate(path.String())), err)
	}
	return nil
}

// text returns the text of a member that an operation must have.
func text(operation *Node, name string) (string, error) {
	member := operation.Member(name)
	switch {
	case member == nil:
		return "", fmt.Errorf("%s is missing", name)
	case member.Kind != jsontext.String:
		return "", fmt.Errorf("%s is %s, not a string", name, member.Noun())
	}
	return member.String(), nil
}

func pointerIn(operation *Node, name string) (Pointer, error) {
	written, err := text(operation, name)
	if err != nil {
		return Pointer{}, err
	}
	p, err := ParsePointer(written)
	if err != nil {
		return p, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

func valueIn(operation *Node) (*Node, error) {
	if value := operation.Member("value"); value != nil {
		return value, nil
	}
	return nil, errors.New("value is missing; write null if that is the value")
}

func (d *patched) opAdd(operation *Node, path Pointer) error {
	value, err := valueIn(operation)
	if err != nil {
		return err
	}
	return d.add(path, value)
}

func (d *patched) opReplace(operation *Node, path Pointer) error {
	value, err := valueIn(operation)
	if err != nil {
		return err
	}
	replaced, err := path.Find(d.root)
	if err != nil {
		return err
	}
	if err := d.grow(value, ""); err != nil {
		return err
	}
	*replaced = *value
	return nil
}

func (d *patched) opMove(operation *Node, path Pointer) error {
	from, err := pointerIn(operation, "from")
	if err != nil {
		return err
	}
	if len(from.tokens) < len(path.tokens) && slices.Equal(from.tokens, path.tokens[:len(from.tokens)]) {
		return fmt.Errorf("from %s holds the path; a value cannot move into itself", quote(truncate(from.String())))
	}
	if slices.Equal(from.tokens, path.tokens) {
		return second(from.Find(d.root))
	}
	value, err := d.remove(from)
	if err != nil {
		return fmt.Errorf("from: %w", err)
	}
	return d.add(path, value)
}

func (d *patched) opCopy(operation *Node, path Pointer) error {
	from, err := pointerIn(operation, "from")
	if err != nil {
		return err
	}
	value, err := from.Find(d.root)
	if err != nil {
		return fmt.Errorf("from: %w", err)
	}
	if d.bytes+value.bytes() > maxBytes { // before there is a copy
		return errTooLong
	}
	return d.add(path, value.Clone())
}

func (d *patched) opTest(operation *Node, path Pointer) error {
	want, err := valueIn(operation)
	if err != nil {
		return err
	}
	value, err := path.Find(d.root)
	if err != nil {
		return err
	}
	if !Equal(value, want) {
		shown, err := value.Write(0)
		if err != nil {
			return err
		}
		return fmt.Errorf("the value is another one: %s", truncate(shown))
	}
	return nil
}

// grow notes that a value is added, under a name.
func (d *patched) grow(value *Node, name string) error {
	if d.bytes += value.bytes() + len(name) + len(`"":,`); d.bytes > maxBytes {
		return errTooLong
	}
	return nil
}

// parent returns the container of the value at a pointer. The value itself need not exist.
func (d *patched) parent(path Pointer) (*Node, error) {
	return Pointer{path.text, path.tokens[:len(path.tokens)-1]}.Find(d.root)
}

func (d *patched) add(path Pointer, value *Node) error {
	last := len(path.tokens) - 1
	if last < 0 {
		d.root = value
		return d.grow(value, "")
	}
	parent, err := d.parent(path)
	if err != nil {
		return err
	}
	name := path.tokens[last]
	if err := d.grow(value, name); err != nil {
		return err
	}
	switch parent.Kind {
	case jsontext.Object:
		parent.Set(name, value)
		return nil
	case jsontext.Array:
		at := len(parent.Elements)
		if name != "-" {
			if at, err = path.index(parent, last, at); err != nil {
				return err
			}
		}
		parent.Elements = slices.Insert(parent.Elements, at, value)
		return nil
	}
	return fmt.Errorf("%s is %s, to which nothing can be added", path.upTo(last), parent.Noun())
}

// remove removes and returns a value.
func (d *patched) remove(path Pointer) (*Node, error) {
	last := len(path.tokens) - 1
	if last < 0 {
		return nil, errors.New("the whole document cannot be removed; replace it")
	}
	parent, err := d.parent(path)
	if err != nil {
		return nil, err
	}
	value, err := path.step(parent, last)
	if err != nil {
		return nil, err
	}
	if parent.Kind == jsontext.Object {
		at := parent.index(path.tokens[last])
		parent.Members = slices.Delete(parent.Members, at, at+1)
	} else {
		at, err := path.index(parent, last, len(parent.Elements)-1)
		if err != nil {
			return nil, err
		}
		parent.Elements = slices.Delete(parent.Elements, at, at+1)
	}
	return value, nil
}
