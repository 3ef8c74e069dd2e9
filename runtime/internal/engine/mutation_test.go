//go:build !race

// Nothing here runs at the same time as anything else, and the race detector would take minutes.

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// This file compares our validation with wazero's, on modules that differ a little from valid ones. Rewriting makes an
// instruction valid that names the first global or function after the last, so only validation keeps an invalid module
// from becoming valid.

// mutants is the number of mutants of each seed.
const mutants = 16

// verdict is nil for a module that is taken for valid.
type verdict func(source []byte, description *wasm.Module) error

// ours is the verdict that the engine goes by.
func ours(source []byte, description *wasm.Module) error {
	_, err := wasm.Validate(source, description)
	return err
}

// credulous takes every module for valid whose sections can be read.
func credulous([]byte, *wasm.Module) error { return nil }

// findings count the outcomes of mutants.
type findings struct {
	mutants, unreadable, accepted, refused int
	looser                                 int            // accepted only by us, for limits of wazero
	stricter                               map[string]int // refused only by us, by reason
	changed                                map[string]int // accepted, by mutation
	violations                             []string
}

func newFindings() *findings {
	return &findings{changed: map[string]int{}, stricter: map[string]int{}}
}

func (f *findings) add(other *findings) {
	f.mutants, f.unreadable = f.mutants+other.mutants, f.unreadable+other.unreadable
	f.accepted, f.refused = f.accepted+other.accepted, f.refused+other.refused
	f.looser += other.looser
	for key, n := range other.changed {
		f.changed[key] += n
	}
	for key, n := range other.stricter {
		f.stricter[key] += n
	}
	f.violations = append(f.violations, other.violations...)
}

func (f *findings) violate(format string, arguments ...any) {
	f.violations = append(f.violations, fmt.Sprintf(format, arguments...))
}

// judge compares wazero with a verdict. It serves one goroutine.
type judge struct {
	*findings
	verdict               verdict
	interpreter, compiler wazero.Runtime
}

// compiles has wazero validate a module. Its interpreter is quick, and validates as its compiler does, but fails to
// translate some valid code; so if the interpreter refuses a module, the compiler decides.
func (j *judge) compiles(ctx context.Context, source []byte) error {
	if compileWith(ctx, j.interpreter, source) == nil {
		return nil
	}
	return compileWith(ctx, j.compiler, source)
}

func compileWith(ctx context.Context, r wazero.Runtime, source []byte) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("wazero panicked: %v", value)
		}
	}()
	compiled, err := r.CompileModule(ctx, source)
	if err != nil {
		return err
	}
	return compiled.Close(ctx)
}

// limitsOfWazero returns parts of the reasons for which wazero refuses valid modules.
func limitsOfWazero() []string {
	return []string{"table min must be at most", "too many type immediates for typed_select"}
}

// module judges one mutant, which a mutation made of a seed.
func (j *judge) module(ctx context.Context, s seed, mutation string, mutant []byte) {
	j.mutants++
	description, err := wasm.Inspect(mutant)
	if err != nil {
		j.unreadable++ // wazero would trust its counts
		return
	}
	// Validation ignores custom sections, whose counts wazero would trust.
	theirs := j.compiles(ctx, wasm.StripCustom(mutant, description, func(string) bool { return false }))
	if err := j.verdict(mutant, description); err != nil {
		j.refused++
		if theirs == nil {
			j.stricter[reasonOfRefusal(err)]++
		}
		// The seed's analysis does not get the mutant rewritten.
		if _, err := wasm.Rewrite(ctx, mutant, s.analysis, wasm.Passes{Meter: true}); !errors.Is(err, wasm.ErrUnvalidated) {
			j.violate("%s, %s: rewritten unvalidated (%v): %x", s.name, mutation, err, mutant)
		}
		if _, err := rewrite(ctx, mutant, description); err == nil {
			j.violate("%s, %s: refused and rewritten: %x", s.name, mutation, mutant)
		}
		return
	}
	j.accepted++
	j.changed[mutation]++
	if theirs != nil && slices.ContainsFunc(limitsOfWazero(), func(part string) bool { return strings.Contains(theirs.Error(), part) }) {
		j.looser++
		return
	}
	if theirs != nil {
		j.violate("%s, %s: accepted, and wazero says %q: %x", s.name, mutation, theirs, mutant)
		return
	}
	j.rewritten(ctx, s, mutation, mutant, description)
}

// rewritten checks the rewritten form of a valid mutant.
func (j *judge) rewritten(ctx context.Context, s seed, mutation string, mutant []byte, description *wasm.Module) {
	r, err := rewrite(ctx, mutant, description)
	switch {
	case errors.Is(err, wasm.ErrLimit), errors.Is(err, wasm.ErrUninstantiable):
		j.stricter[reasonOfRefusal(err)]++
	case err != nil:
		j.violate("%s, %s: valid, and not rewritten: %v: %x", s.name, mutation, err, mutant)
	default:
		if err := j.compiles(ctx, r.source); err != nil {
			j.violate("%s, %s: valid, and invalid once it is rewritten: %v: %x", s.name, mutation, err, mutant)
		}
	}
}

// variable matches the numbers and types in messages, which differ between refusals for the same reason.
var variable = regexp.MustCompile(`\b\d+\b|\b[if](32|64)\b|\bv128\b|\b(func|extern)ref\b`)

// reasonOfRefusal returns the sentinel's text for a limit, a proposal or an instantiation that fails, and otherwise the
// message without its variable parts.
func reasonOfRefusal(err error) string {
	for _, kind := range []error{wasm.ErrLimit, wasm.ErrUnsupported, wasm.ErrUninstantiable} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	var failure *wasm.Error
	if !errors.As(err, &failure) {
		return err.Error()
	}
	return variable.ReplaceAllString(failure.Message, "_")
}

// stricterReasons returns the reasons for which we refuse modules that wazero accepts. Except for the first three, the
// specification refuses them too.
func stricterReasons() []string {
	return []string{
		wasm.ErrLimit.Error(), wasm.ErrUnsupported.Error(), wasm.ErrUninstantiable.Error(),
		"there is no instruction 0xfd _",                                      // wazero looks only at the first byte of the number
		"not a LEB128 integer of _ bits in an instruction",                    // or at those bits of the last that it needs
		"a constant expression refers to global _, which can change",          // it does not look
		"select takes _, _ is on the stack", "end takes _, _ is on the stack", // at the type that select names
	}
}

// seed is a valid module.
type seed struct {
	name     string
	source   []byte
	analysis *wasm.Analysis
	parts    parts
}

// seeds returns the specification's valid modules, those of wazero's that are small, and
// the kernels in C and Rust, in a fixed order.
func seeds(t *testing.T) []seed {
	t.Helper()
	root := moduleFolder(t, "github.com/tetratelabs/wazero")
	all := modulesBelow(t, filepath.Join(root, "internal", "integration_test", "spectest", "v2"), "")
	for name, source := range modulesBelow(t, root, "spectest") {
		if len(source) < 8<<10 {
			all["wazero/"+name] = source
		}
	}
	for _, language := range []guests.Language{guests.C, guests.Rust} {
		source := kernels(t, language)
		all["kernels/"+string(language)] = source
	}
	var found []seed
	seen := map[Digest]bool{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		source := all[name]
		description, err := wasm.Inspect(source)
		if err != nil || seen[DigestOf(source)] {
			continue
		}
		if analysis, err := wasm.Validate(source, description); err == nil {
			seen[DigestOf(source)] = true
			found = append(found, seed{name, source, analysis, partsOf(source, description)})
		}
	}
	return found
}

// judged returns the findings about mutants of the seeds, which it judges on all processors.
func judged(t *testing.T, seeds []seed, mutants int, v verdict) *findings {
	t.Helper()
	total := newFindings()
	var mu sync.Mutex
	var group sync.WaitGroup
	workers := goruntime.GOMAXPROCS(0)
	for worker := range workers {
		group.Go(func() {
			j := &judge{findings: newFindings(), verdict: v,
				interpreter: wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter()),
				compiler:    wazero.NewRuntimeWithConfig(t.Context(), runtimeConfig())}
			defer j.interpreter.Close(context.Background())
			defer j.compiler.Close(context.Background())
			for n := worker; n < len(seeds); n += workers {
				random := rand.New(rand.NewPCG(1, uint64(n)))
				for range mutants {
					mutation, mutant := mutate(seeds[n].parts, random)
					j.module(t.Context(), seeds[n], mutation, mutant)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			total.add(j.findings)
		})
	}
	group.Wait()
	return total
}

func TestMutantsAreJudgedAsByWazero(t *testing.T) {
	all := seeds(t)
	f := judged(t, all, mutants, ours)
	t.Logf("%d mutants of %d modules: %d unreadable, %d refused, %d accepted", f.mutants, len(all), f.unreadable, f.refused, f.accepted)
	t.Logf("accepted: %v", f.changed)
	t.Logf("refused only by us: %v; accepted only by us: %d", f.stricter, f.looser)
	assert.Greater(t, f.accepted, 4000, "enough mutants are valid")
	assert.Greater(t, f.refused, 4000)
	assert.Subset(t, stricterReasons(), slices.Collect(maps.Keys(f.stricter)))
	assert.Empty(t, f.violations[:min(len(f.violations), 20)])
}

// TestMutantsBetrayCredulity: the comparison notices a validation that accepts everything, because wazero refuses
// modules that it lets pass.
func TestMutantsBetrayCredulity(t *testing.T) {
	all := seeds(t)
	f := judged(t, all, 1, credulous)
	t.Logf("%d of %d mutants betray it", len(f.violations), f.accepted)
	assert.Greater(t, len(f.violations), f.accepted/10)
}

// TestVectorInstructionsAreReadAlike: by the specification, v128.const has a constant of 16 bytes, and would be metered
// so. But wazero takes these bytes for code if the instruction's number has an unnecessary byte, and that code could be
// a loop.
func TestVectorInstructionsAreReadAlike(t *testing.T) {
	zero := join([]byte{0xfd, 0x0c}, make([]byte, 16)) // v128.const
	padded := join([]byte{0xfd, 0x8c, 0}, bytes.Repeat([]byte{0x01}, 16))
	p := program{body: join(zero, []byte{0x41, 0}, padded, []byte{0x1a, 0x1a, 0x1a}), memory: -1} // i32.const, and drop three values
	e := newEngine(t, Options{}, nil)
	_, err := e.Compile(t.Context(), p.bytes())
	require.ErrorIs(t, err, wasm.ErrUnsupported)

	instance, err := e.runtime.Instantiate(t.Context(), p.bytes())
	require.NoError(t, err)
	_, err = instance.ExportedFunction("run").Call(t.Context())
	assert.ErrorContains(t, err, "unreachable", "control: wazero sees a shift and that, where there is nothing that traps")
	require.NoError(t, instance.Close(t.Context()))

	padded = join([]byte{0xfd, 0x0c}, bytes.Repeat([]byte{0x01}, 16))
	p.body = join(zero, []byte{0x41, 0}, padded, []byte{0x1a, 0x1a, 0x1a})
	mustRun(t, compile(t, e, p), plain)
}

// part is a section of a module.
type part struct {
	id      byte
	content []byte
}

// parts is a module taken apart, so that sizes are corrected after a change: otherwise hardly any mutant would pass the
// checks of sizes.
type parts struct {
	sections []part
	bodies   [][]byte // of the code section
	globals  int      // in the index space
	function int      // the first index after the last function
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
