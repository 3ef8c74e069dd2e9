package kernels

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTextUnpacksToItself(t *testing.T) {
	source := random(12)
	for _, text := range [][]byte{
		nil, []byte("a"), []byte("abcabcabcabc"), bytes.Repeat([]byte{7}, 1000), source.bytes(300), writeText(3 * lzWindow),
	} {
		unpacked, ok := unpack(pack(text))
		require.True(t, ok)
		require.True(t, bytes.Equal(text, unpacked))
	}
	text := writeText(1 << 16)
	require.Less(t, len(pack(text)), len(text)*2/3)
}

func TestUnpackRefuses(t *testing.T) {
	for _, packed := range []string{
		"", "\x02a", "\x01a\x00", "\x01a\x00\x00", "\x01a\x00\x02", "\x01a\x00\x01", "\x01a\xff\x02\x01\x00", "\xff\xff\xff\xff\x01",
	} {
		_, ok := unpack([]byte(packed))
		require.False(t, ok, "%q", packed)
	}
}

func TestRegexFindsWhatTheStandardOneFinds(t *testing.T) {
	log := writeLog(200)
	more := []string{`b|be|c`, `(a|b)+c?`, `[x^]?=`, `a..?\.`, `((a)(b|c*)*)+t`, `[a-cx0-3]+`, `m(s|a)`}
	for _, pattern := range append(more, patterns...) {
		want := regexp.MustCompile(pattern)
		want.Longest()
		m := newMatcher(compileRegex(pattern))
		matches := 0
		for line := range bytes.Lines(log) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			checksum := uint64(checksumSeed)
			for _, found := range want.FindAllIndex(line, -1) {
				checksum = mix(checksum, uint64(found[0])<<32|uint64(found[1]))
				matches++
			}
			require.Equal(t, checksum, m.all(checksumSeed, line), "%s in %s", pattern, line)
		}
		require.NotZero(t, matches, pattern)
	}
}

func TestMachineRunsTheProgram(t *testing.T) {
	for _, limit := range []uint64{0, 1, 27, 300} {
		var m machine
		m.stack[0], m.used = limit, 1
		require.True(t, m.run(program))
		var total uint64
		var memory [machineMemory]uint64
		for i := uint64(1); i <= limit; i++ {
			n := i
			for ; n != 1; total++ {
				if n%2 == 0 {
					n /= 2
				} else {
					n = 3*n + 1
				}
			}
			a, b := i, uint64(360360)
			for b != 0 {
				a, b = b, a%b
			}
			total ^= a
			total = total<<5 | total>>59
			total -= memory[i*7%machineMemory]
			memory[i%machineMemory] = total
		}
		require.Equal(t, total, m.stack[m.used-1], limit)
		require.Equal(t, 1, m.used)
		require.Equal(t, memory, m.memory)
	}
}

func TestMachineStops(t *testing.T) {
	for name, wrong := range map[string][]instruction{
		"division by zero":  {{opPush, 1}, {opPush, 0}, {opDivide, 0}, {opHalt, 0}},
		"remainder of zero": {{opPush, 1}, {opPush, 0}, {opRemainder, 0}, {opHalt, 0}},
		"bad address":       {{opPush, machineMemory}, {opLoad, 0}, {opHalt, 0}},
		"bad place":         {{opPush, 1}, {opPush, machineMemory}, {opStore, 0}, {opHalt, 0}},
		"endless recursion": {{opCall, 0}},
		"no caller":         {{opReturn, 0}},
		"no instruction":    {{opHalt + 1, 0}},
	} {
		require.False(t, new(machine).run(wrong), name)
	}
}

func TestFormulas(t *testing.T) {
	row := variables{2, -3, 5, 7}
	for text, want := range map[string]int64{
		"12": 12, "a+b*c": -13, "(a + b) * c": -5, "1 - 2 - 3": -4, "100 / 7 % 4": 2, "--d": 7, "-abs(b)": -3,
		"min(a, d) - max(b, c)": -3, "if(a < b, 1, if(b < a, 2, 3))": 2, "1 < 2 < 1": 0, "d / (a - 2)": 0, "d % 0": 0,
		"-7 / 2": -3, "-7 % 2": -1,
	} {
		formula, ok := parseFormula([]byte(text))
		require.True(t, ok, text)
		require.Equal(t, want, formula.value(&row), text)
	}
	for _, text := range []string{"", "1 +", "(1", "1)", "e", "sum(1)", "min(1)", "abs(1, 2)", "if(1, 2)", "1 2", "a b", "#"} {
		_, ok := parseFormula([]byte(text))
		require.False(t, ok, text)
	}
}

func TestWrittenFormulasCanBeRead(t *testing.T) {
	source := random(13)
	for range 100 {
		var w formulaWriter
		w.formula(&source, formulaDepth)
		_, ok := parseFormula(w.text)
		require.True(t, ok, string(w.text))
	}
}
