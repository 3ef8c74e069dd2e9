package wasm

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// moduleWith describes a module that imports and exports these functions, by names such as "lib.f".
func moduleWith(imports map[string][]string, exports ...string) *Module {
	m := &Module{Types: []FuncType{{Params: []ValueType{I64}, Results: []ValueType{I64}}}}
	for _, module := range []string{"a", "b", "c", "d", "host"} {
		for _, name := range imports[module] {
			m.Imports = append(m.Imports, Import{Module: module, Name: name, Function: m.Types[0]})
		}
	}
	for n, name := range exports {
		m.Functions = append(m.Functions, Function{})
		m.Exports = append(m.Exports, Export{Name: name, Index: uint32(len(m.Imports) + n)})
	}
	return m
}

// TestLinkOrdersLibraries: each library comes after those that it imports from, and imports that no library has remain.
func TestLinkOrdersLibraries(t *testing.T) {
	main := moduleWith(map[string][]string{"a": {"f", "f"}, "host": {"log"}})
	linked, err := Link(main, map[string]*Module{
		"a": moduleWith(map[string][]string{"b": {"g"}, "c": {"h"}}, "f"),
		"b": moduleWith(map[string][]string{"c": {"h"}, "host": {"alloc"}}, "g"),
		"c": moduleWith(nil, "h"),
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"c", "b", "a"}, linked.Order)
	assert.Empty(t, linked.Unused)
	assert.Same(t, main, linked.Main)
	var left []string
	for _, i := range linked.Imports {
		left = append(left, i.Module+"."+i.Name)
	}
	assert.Equal(t, []string{"host.log", "host.alloc"}, left)

	linked, err = Link(main, nil)
	require.NoError(t, err)
	assert.Equal(t, main.Imports, linked.Imports)
	assert.Empty(t, linked.Order)
}

// TestLinkKnowsUnusedLibraries: one that only an unused library imports from is unused, too.
func TestLinkKnowsUnusedLibraries(t *testing.T) {
	linked, err := Link(moduleWith(map[string][]string{"b": {"g"}}), map[string]*Module{
		"a": moduleWith(map[string][]string{"b": {"g"}, "c": {"h"}}, "f"),
		"b": moduleWith(map[string][]string{"d": {"i"}}, "g"),
		"c": moduleWith(nil, "h"),
		"d": moduleWith(nil, "i"),
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "c"}, linked.Unused)
}

// TestLinkRejects: an import that cannot be resolved, or could let libraries call back, is named.
func TestLinkRejects(t *testing.T) {
	exporting := func(kind ExternKind, f FuncType) *Module {
		return &Module{Types: []FuncType{f}, Functions: []Function{{}}, Exports: []Export{{Name: "f", Kind: kind}}}
	}
	importing := func(i Import) *Module {
		i.Module, i.Name = "a", "f"
		return &Module{Imports: []Import{i}}
	}
	none, number, reference := FuncType{}, FuncType{Params: []ValueType{I32}}, FuncType{Results: []ValueType{FuncRef}}
	vector := FuncType{Params: []ValueType{V128}}
	for want, c := range map[string]struct {
		main      *Module
		libraries map[string]*Module
	}{
		`it imports "f" of the library "a", which exports no such function`: {importing(Import{}), map[string]*Module{"a": moduleWith(nil, "g")}},
		`it imports "f" of the library "a", as a function of type () -> (), and its type is (i32) -> ()`: {
			importing(Import{Function: none}), map[string]*Module{"a": exporting(ExternFunction, number)}},
		`it imports "f" of the library "a", whose type is () -> (funcref); only numbers can be passed to libraries`: {
			importing(Import{Function: reference}), map[string]*Module{"a": exporting(ExternFunction, reference)}},
		`it imports "f" of the library "a", whose type is (v128) -> (); only numbers can be passed to libraries`: {
			importing(Import{Function: vector}), map[string]*Module{"a": exporting(ExternFunction, vector)}},
		`it imports "f" of the library "a", which is a memory; only functions can be imported from libraries`: {
			importing(Import{Kind: ExternMemory}), map[string]*Module{"a": exporting(ExternMemory, none)}},
		`it imports "f" of the library "a", which is a table; only functions can be imported from libraries`: {
			importing(Import{Kind: ExternTable}), map[string]*Module{"a": exporting(ExternTable, none)}},
		`it imports "f" of the library "a", which is a global; only functions can be imported from libraries`: {
			importing(Import{Kind: ExternGlobal}), map[string]*Module{"a": exporting(ExternGlobal, none)}},
		`the library "b" imports "f" of the library "a", which exports no such function`: {
			moduleWith(nil), map[string]*Module{"a": moduleWith(nil), "b": moduleWith(map[string][]string{"a": {"f"}})}},
		`the libraries ["a" "b"] import from each other in a cycle`: {
			moduleWith(nil), map[string]*Module{"a": moduleWith(map[string][]string{"b": {"g"}}, "f"), "b": moduleWith(map[string][]string{"a": {"f"}}, "g"), "c": moduleWith(nil)}},
		`the libraries ["a"] import from each other in a cycle`: {
			moduleWith(nil), map[string]*Module{"a": moduleWith(map[string][]string{"a": {"f"}}, "f")}},
	} {
		t.Run(want, func(t *testing.T) {
			_, err := Link(c.main, c.libraries)
			require.ErrorIs(t, err, ErrLink)
			assert.Equal(t, "cannot be linked: "+want, err.Error())
		})
	}
}
