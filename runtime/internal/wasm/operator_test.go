package wasm

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rows returns all instructions by their opcode.
func rows() map[opcode]*operator {
	found := map[opcode]*operator{}
	for n := range 0x100 {
		for _, prefix := range []opcode{0, opNumbered << 8, opVector << 8} {
			if row := (prefix | opcode(n)).find(); row != nil {
				found[prefix|opcode(n)] = row
			}
		}
	}
	return found
}

func TestOperatorsAreComplete(t *testing.T) {
	counts := map[byte]int{}
	for code := range rows() {
		counts[byte(code>>8)]++
	}
	// Core 2.0 has 183 instructions of one byte, 18 with the prefix 0xfc and 236 with 0xfd (§A.8, "Index of
	// Instructions"); tail calls add two.
	assert.Equal(t, map[byte]int{0: 183 + 2, opNumbered: 18, opVector: 236}, counts)
}

// The tables agree with the names in wazero's source: constants such as OpcodeVecI8x16AddName = "i8x16.add" in addition
// to OpcodeVecI8x16Add = 0x6e.
func TestOperatorsAgreeWithWazero(t *testing.T) {
	path := filepath.Join(wazeroDir(t), "internal", "wasm", "instruction.go")
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	numbers, names := map[string]int64{}, map[string]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		name := spec.Names[0].Name
		if literal.Kind == token.INT {
			numbers[name], err = strconv.ParseInt(literal.Value, 0, 64)
		} else {
			names[strings.TrimSuffix(name, "Name")], err = strconv.Unquote(literal.Value)
		}
		require.NoError(t, err)
		return true
	})
	compared, different := 0, map[string]string{}
	for _, constant := range slices.Sorted(maps.Keys(names)) {
		prefix, ok := wazeroPrefix(constant)
		number, found := numbers[constant]
		if !ok || !found {
			continue
		}
		compared++
		if ours := (prefix | opcode(number)).String(); ours != names[constant] {
			different[names[constant]] = ours
		}
	}
	assert.Equal(t, map[string]string{ // the names on the right are the specification's
		"f32.convert_i64u": "f32.convert_i64_u", "typed_select": "select", "v128.shuffle": "i8x16.shuffle",
		"i8x16.sub_s": "i8x16.sub_sat_s", "i8x16.sub_u": "i8x16.sub_sat_u",
		"i64x2.ge": "i64x2.ge_s", "i64x2.gt": "i64x2.gt_s", "i64x2.le": "i64x2.le_s", "i64x2.lt": "i64x2.lt_s",
	}, different)
	assert.Greater(t, compared, 400)
	t.Logf("%d names compared", compared)
}

// wazeroPrefix returns the prefix of the opcodes that a constant of wazero is among, or
// false if core 2.0 does not have them.
func wazeroPrefix(constant string) (opcode, bool) {
	switch {
	case strings.HasSuffix(constant, "Prefix"):
		return 0, false
	case strings.HasPrefix(constant, "OpcodeVec"):
		return opVector << 8, true
	case strings.HasPrefix(constant, "OpcodeMisc"):
		return opNumbered << 8, true
	case strings.HasPrefix(constant, "OpcodeAtomic"), strings.Contains(constant, "Throw"), strings.Contains(constant, "TryTable"),
		strings.Contains(constant, "Legacy"), strings.Contains(constant, "Prefix"),
		strings.HasPrefix(constant, "OpcodeBrOn"), strings.HasSuffix(constant, "CallRef"), constant == "OpcodeRefAsNonNull":
		return 0, false
	}
	return 0, strings.HasPrefix(constant, "Opcode")
}

func TestOperatorsAreConsistent(t *testing.T) {
	for code, row := range rows() {
		memory := row.immediates >= immediateMemory
		if row.immediates == immediateMemory || row.immediates == immediateMemoryLane {
			assert.Equal(t, byte(I32), row.params[0], "%s takes an address", row.name)
		} else {
			assert.Zero(t, row.align, row.name)
		}
		lane := row.immediates == immediateLane || row.immediates == immediateMemoryLane
		assert.Equal(t, lane, row.lanes > 0, row.name)
		if strings.HasPrefix(row.name, "memory.") {
			assert.True(t, memory, row.name)
		}
		assert.LessOrEqual(t, len(row.results), 1, row.name)
		if row.special || row.name == "nop" {
			continue
		}
		assert.NotEmpty(t, row.params+row.results, row.name)
		if typed, _, found := strings.Cut(row.name, "."); found && len(typed) == 3 && row.results != string(rune(I32)) {
			if !strings.Contains(row.name, "store") {
				assert.Equal(t, typed, ValueType(row.results[0]).String(), row.name)
			}
		}
		assert.Equal(t, row.name, code.String())
	}
}
