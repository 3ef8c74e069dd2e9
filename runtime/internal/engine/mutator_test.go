//go:build !race

package engine

import (
	"math/rand/v2"
	"slices"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// part is a section of a module.
type part struct {
	id      byte
	content []byte
}

// parts is a module taken apart, so that what is changed in it has its sizes put right:
// otherwise hardly a mutant would get past them.
type parts struct {
	sections []part
	bodies   [][]byte // of the code section
	globals  int      // in the index space
	function int      // the first index behind the last function
}

func partsOf(source []byte, description *wasm.Module) parts {
	p := parts{globals: len(description.Globals), function: len(description.Functions)}
	for _, s := range description.Sections {
		p.sections = append(p.sections, part{byte(s.ID), source[s.Content:s.End]})
	}
	for _, f := range description.Functions {
		p.bodies = append(p.bodies, source[f.Offset:f.Offset+f.Size])
	}
	for _, imported := range description.Imports {
		switch imported.Kind {
		case wasm.ExternFunction:
			p.function++
		case wasm.ExternGlobal:
			p.globals++
		}
	}
	return p
}

// module puts sections together.
func (p parts) module(sections []part) []byte {
	module := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	for _, s := range sections {
		module = append(module, section(s.id, s.content...)...)
	}
	return module
}

// withContent is the module with other contents of one section.
func (p parts) withContent(n int, content []byte) []byte {
	changed := slices.Clone(p.sections)
	changed[n].content = content
	return p.module(changed)
}

// withBody is the module with another body of one function.
func (p parts) withBody(n int, body []byte) []byte {
	code := leb(len(p.bodies))
	for i, b := range p.bodies {
		if i == n {
			b = body
		}
		code = append(append(code, leb(len(b))...), b...)
	}
	for i, s := range p.sections {
		if s.id == byte(wasm.SectionCode) {
			return p.withContent(i, code)
		}
	}
	return nil
}

// mutation changes bytes, of which there is at least one.
type mutation struct {
	name   string
	change func(bytes []byte, p parts, random *rand.Rand) []byte
}

// mutations are those within a body or another section.
func mutations() []mutation {
	return []mutation{
		{"a bit is flipped", func(b []byte, _ parts, r *rand.Rand) []byte {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
			return b
		}},
		{"a byte is another", func(b []byte, _ parts, r *rand.Rand) []byte {
			b[r.IntN(len(b))] = byte(r.Uint32())
			return b
		}},
		{"a byte is inserted", func(b []byte, _ parts, r *rand.Rand) []byte {
			return slices.Insert(b, r.IntN(len(b)+1), byte(r.Uint32()))
		}},
		{"a byte is deleted", func(b []byte, _ parts, r *rand.Rand) []byte {
			at := r.IntN(len(b))
			return slices.Delete(b, at, at+1)
		}},
		{"a number is one more or less", func(b []byte, _ parts, r *rand.Rand) []byte {
			b[r.IntN(len(b))] += byte(2*r.IntN(2)) - 1
			return b
		}},
		{"a number has a byte more", func(b []byte, _ parts, r *rand.Rand) []byte {
			at := r.IntN(len(b))
			return slices.Replace(b, at, at+1, b[at]|0x80, 0)
		}},
		{"a number is the largest", func(b []byte, _ parts, r *rand.Rand) []byte {
			at := r.IntN(len(b))
			return slices.Replace(b, at, at+1, 0xff, 0xff, 0xff, 0xff, 0x0f)
		}},
		{"an instruction names what is added", func(b []byte, p parts, r *rand.Rand) []byte {
			named := [][]byte{
				join([]byte{0x23}, leb(p.globals), []byte{0x1a}),  // global.get, drop
				join([]byte{0xd2}, leb(p.function), []byte{0x1a}), // ref.func, drop
				join([]byte{0x42, 0, 0x10}, leb(p.function), []byte{0x1a}),
				join([]byte{0x42, 0, 0x24}, leb(p.globals)), // i64.const, global.set
			}
			return slices.Insert(b, r.IntN(len(b)+1), named[r.IntN(len(named))]...)
		}},
		{"some bytes come twice", func(b []byte, _ parts, r *rand.Rand) []byte {
			from := r.IntN(len(b))
			to := min(from+1+r.IntN(8), len(b))
			return slices.Insert(b, r.IntN(len(b)+1), slices.Clone(b[from:to])...)
		}},
	}
}

// mutate changes a module in one place, and says how.
func mutate(p parts, random *rand.Rand) (string, []byte) {
	switch choice := random.IntN(10); {
	case choice == 0:
		return p.sectionsMoved(random)
	case choice < 7 && len(p.bodies) > 0:
		return p.bodyChanged(random)
	default:
		return p.contentChanged(random)
	}
}

func (p parts) bodyChanged(random *rand.Rand) (string, []byte) {
	n, all := random.IntN(len(p.bodies)), mutations()
	choice := random.IntN(len(all) + 1)
	if choice == len(all) {
		return "a body is another's", p.withBody(n, p.bodies[random.IntN(len(p.bodies))])
	}
	m := all[choice]
	return m.name, p.withBody(n, m.change(slices.Clone(p.bodies[n]), p, random))
}

func (p parts) contentChanged(random *rand.Rand) (string, []byte) {
	if len(p.sections) == 0 {
		return "a byte is added", append(p.module(nil), byte(random.Uint32()))
	}
	n, all := random.IntN(len(p.sections)), mutations()
	m := all[random.IntN(len(all))]
	content := slices.Clone(p.sections[n].content)
	if len(content) == 0 {
		content = []byte{0}
	}
	return m.name, p.withContent(n, m.change(content, p, random))
}

func (p parts) sectionsMoved(random *rand.Rand) (string, []byte) {
	if len(p.sections) == 0 {
		return p.contentChanged(random)
	}
	changed := slices.Clone(p.sections)
	a, b := random.IntN(len(changed)), random.IntN(len(changed))
	switch random.IntN(3) {
	case 0:
		changed[a], changed[b] = changed[b], changed[a]
		return "two sections are swapped", p.module(changed)
	case 1:
		return "a section is gone", p.module(slices.Delete(changed, a, a+1))
	default:
		return "a section comes twice", p.module(slices.Insert(changed, b, changed[a]))
	}
}
