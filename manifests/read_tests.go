package manifests

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/tool"
)

const (
	maxTests    = 1000
	maxTestName = 200 // characters
)

func (r *reader) tests(n *node, path string) []Test {
	var tests []Test
	names := map[string]bool{}
	r.list(n, path, maxTests, func(n *node, path string) {
		test := r.test(n, path)
		if test.Name != "" && names[test.Name] {
			inner := path + ".name"
			r.add(r.place(inner), inner, mistake.DuplicateKey, fmt.Sprintf("there are two tests with the name %q", test.Name),
				"give each test its own name")
		}
		names[test.Name] = true
		tests = append(tests, test)
	})
	return tests
}

func (r *reader) test(n *node, path string) Test {
	t := Test{Arguments: json.RawMessage("{}")}
	r.object(n, path,
		required("name", "name: and what the test shows", &t.Name, r.line(maxTestName)),
		field{"arguments", "", func(n *node, path string) {
			if r.kind(n, path, objectNode, "write the arguments as an object, {} for none") {
				t.Arguments = n.json()
			}
		}},
		optional("context", &t.Context, r.texts),
		optional("files", &t.Files, r.files),
		required("expect", "expect: {success: true}", &t.Expect, r.expect),
	)
	return t
}

func (r *reader) expect(n *node, path string) (e Expect) {
	r.object(n, path,
		optional("success", &e.Success, pointer(r.boolean)),
		field{"kind", "", func(n *node, path string) { e.Kind = string(choice(r, tool.Kinds()...)(n, path)) }},
		optional("output", &e.Output, pointer(r.text)),
		optional("error", &e.Error, r.text),
		field{"data", "", func(n *node, _ string) { e.Data = n.json() }},
		optional("files", &e.Files, r.files),
	)
	if e.Success != nil && *e.Success && (e.Kind != "" || e.Error != "") {
		inner := path + ".success"
		r.conflict(inner, "a success has neither kind nor error", "write success: false, or remove kind and error")
	}
	return e
}

// texts reads an object whose values are texts.
func (r *reader) texts(n *node, path string) map[string]string {
	if n.note("$ref", textOf("#/$defs/texts")) || !r.kind(n, path, objectNode, "write names and texts below it") {
		return nil
	}
	texts := map[string]string{}
	for _, m := range n.members {
		texts[m.key] = r.text(m.value, keypath.Key(path, m.key))
	}
	return texts
}

// files reads an object that maps guest paths to file contents.
func (r *reader) files(n *node, path string) map[string]string {
	files := r.texts(n, path)
	for _, m := range n.members {
		if _, err := permission.ParseGuestPath(m.key); n.kind == objectNode && (err != nil || m.key == "/") {
			r.add(m.at, keypath.Key(path, m.key), mistake.InvalidValue,
				fmt.Sprintf("%q is not an absolute, clean path of a file", clip(m.key)),
				"write the path as the tool sees it, such as /project/notes.txt")
		}
	}
	return files
}

// checkTests checks that tests use only what the manifest declares.
func (r *reader) checkTests(root *node, m *Manifest) {
	for i, test := range root.below("tests").elements {
		path := keypath.Index("tests", i)
		for _, value := range test.below("context").members {
			if !slices.Contains(m.Context, value.key) {
				r.add(value.at, keypath.Key(path+".context", value.key), mistake.Conflict,
					fmt.Sprintf("%q is not a context name of the tool", clip(value.key)),
					"add it to the context list, or remove it here")
			}
		}
		r.checkTestFiles(test.below("files"), path+".files", m.Permissions.Files)
		r.checkTestFiles(test.below("expect").below("files"), path+".expect.files", m.Permissions.Files)
	}
}

func (r *reader) checkTestFiles(files *node, path string, mounts []FilePermission) {
	for _, file := range files.members {
		guest, err := permission.ParseGuestPath(file.key)
		covered := slices.ContainsFunc(mounts, func(mount FilePermission) bool { return mount.Path.Covers(guest) })
		if err == nil && !covered {
			r.add(file.at, keypath.Key(path, file.key), mistake.Conflict,
				fmt.Sprintf("%s lies outside of permissions.files", clip(file.key)),
				"use a path below one of them, or ask for that folder")
		}
	}
}
