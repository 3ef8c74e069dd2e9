package wasm

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
)

// passesOf are all combinations of the passes that stop a guest, with none and with all
// of those for snapshots, and each of the latter alone.
func passesOf() []Passes {
	all := []Passes{{Globals: true}, {Data: true}, {Fork: true}}
	for n := range 4 {
		p := Passes{Meter: n&1 != 0, Depth: n&2 != 0}
		all = append(all, p)
		p.Globals, p.Data, p.Fork = true, true, true
		if p.Meter && p.Depth {
			linked := p
			linked.Linked = true
			all = append(all, linked)
		}
		all = append(all, p)
	}
	return all
}

// larger returns the default bounds with room for the additions of Rewrite.
func larger() Bounds {
	b := boundless()
	b.Types, b.Exports, b.Globals, b.Functions, b.Imports = 100_010, 100_010, 100_010, 1_000_010, 10_010
	return b
}

// checkRewritten checks the properties of every rewritten module, for all passes: the result is valid, equal each time,
// and the same module apart from the additions.
func checkRewritten(t *testing.T, source []byte, a *Analysis, passes Passes) {
	t.Helper()
	got, err := Rewrite(t.Context(), source, a, passes)
	if passes.Depth && err != nil {
		require.ErrorIs(t, err, ErrLimit)
		return
	}
	require.NoError(t, err)
	again := rewrote(t, source, a, passes)
	require.Equal(t, got, again)
	if passes.none() {
		require.Equal(t, source, got.Source)
		return
	}
	m, err := InspectWithin(got.Source, larger())
	require.NoError(t, err)
	_, err = ValidateWithin(t.Context(), got.Source, m, larger(), a.features)
	require.NoError(t, err)

	want := map[string]ValueType{}
	for name, kind := range map[string]ValueType{got.MeterGlobal: I64, got.DepthGlobal: I32} {
		if name != "" {
			want[name] = kind
		}
	}
	for _, global := range got.Globals {
		want[global.Name] = global.Type
	}
	globals, forks := map[string]ValueType{}, false
	for _, export := range m.Exports[len(a.module.Exports):] {
		if export.Name == ForkName {
			forks = true
			continue
		}
		require.Equal(t, ExternGlobal, export.Kind)
		imported := len(m.Imports)
		for _, i := range m.Imports {
			if i.Kind != ExternGlobal {
				imported--
			}
		}
		global := m.Globals[int(export.Index)-imported]
		require.True(t, global.Mutable)
		globals[export.Name] = global.Type
	}
	require.Equal(t, want, globals)
	require.Equal(t, got.Forks, forks)
	checkSnapshotPasses(t, a, m, got, passes)
	for n, export := range a.module.Exports {
		kept, found := m.ExportedFunction(export.Name)
		before, _ := a.module.ExportedFunction(export.Name)
		require.Equal(t, export.Kind == ExternFunction, found)
		require.Equal(t, before.String(), kept.String())
		require.Equal(t, export.Name, m.Exports[n].Name)
	}
}

func checkAllPasses(t *testing.T, source []byte, a *Analysis) {
	t.Helper()
	for _, passes := range passesOf() {
		checkRewritten(t, source, a, passes)
	}
}

// All modules of the specification's tests, with all combinations of passes.
func TestSpecificationIsRewritten(t *testing.T) {
	root := filepath.Join(wazeroDir(t), "internal", "integration_test", "spectest")
	for suite := range validatedSuites() {
		t.Run(suite, func(t *testing.T) {
			dir, rewritten, refused := filepath.Join(root, suite, "testdata"), 0, 0
			for _, c := range testsize.Sample(commands(t, dir), 600) {
				source := read(t, filepath.Join(dir, c.Filename))
				a, err := check(source, Bounds{}, Features{TailCalls: true})
				if err != nil {
					refused++
					_, err := Rewrite(t.Context(), source, a, Passes{Meter: true})
					require.ErrorIs(t, err, ErrUnvalidated)
					continue
				}
				rewritten++
				checkAllPasses(t, source, a)
			}
			t.Logf("%d modules rewritten, %d refused", rewritten, refused)
		})
	}
}

// A large program, with each pass and all of them.
func TestGoProgramsAreRewritten(t *testing.T) {
	source := goProgram(t)
	a := checked(t, source, Features{})
	require.False(t, a.ChangesTables)
	require.False(t, a.UsesSegments)
	all := passesOf()
	slices.Reverse(all) // what calls use is the last
	for _, passes := range testsize.Sample(all, 2) {
		t.Run(fmt.Sprintf("%+v", passes), func(t *testing.T) {
			checkRewritten(t, source, a, passes)
			got := rewrote(t, source, a, passes)
			t.Logf("%d bytes from %d, %d recursive functions of %d, chain %d bytes", len(got.Source), len(source), got.Recursive, len(a.Functions), got.ChainBytes)
		})
	}
}

// An analysis applies only to the bytes that were analyzed, and not to different ones of the same length.
func TestRewriteNeedsItsAnalysis(t *testing.T) {
	source := fixture(0x23, 1, 0x24, 1)
	a := checked(t, source, Features{})
	for at := range source {
		changed := append([]byte(nil), source...)
		changed[at] ^= 1
		_, err := Rewrite(t.Context(), changed, a, Passes{Meter: true})
		require.ErrorIs(t, err, ErrUnvalidated)
	}
	_, err := Rewrite(t.Context(), source, nil, Passes{})
	require.ErrorIs(t, err, ErrUnvalidated)
	_, err = Rewrite(t.Context(), source, &Analysis{}, Passes{})
	require.ErrorIs(t, err, ErrUnvalidated)
	rewrote(t, source, a, Passes{})
}

// The danger that validation prevents: an instruction that names the global after the last one is invalid, and would be
// valid with a global more.
func TestAnInvalidModuleDoesNotBecomeValid(t *testing.T) {
	before := fixture(0x41, 0, 0x24, 3)
	_, err := check(before, Bounds{}, Features{})
	require.ErrorIs(t, err, ErrInvalid)

	// Control: with the global that the stop pass adds, the same body is valid.
	with := concat(before)
	sections, err := split(with, must(Bounds{}.withDefaults()))
	require.NoError(t, err)
	for _, s := range sections {
		if s.ID == SectionGlobal {
			grown := section(SectionGlobal, leb(3), with[s.Content+1:s.End], raw(byte(I32), 1), i32Zero)
			with = concat(with[:s.Offset], grown, with[s.End:])
		}
	}
	checked(t, with, Features{})
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
