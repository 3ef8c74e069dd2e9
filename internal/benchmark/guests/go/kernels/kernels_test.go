package kernels

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The kernels in other languages are checked against this package, and this package
// against the standard library.

func TestSHA256IsTheStandardOne(t *testing.T) {
	source := random(1)
	for length := range 200 {
		message := source.bytes(length)
		var digest []byte
		for _, word := range sha256Sum(message) {
			digest = binary.BigEndian.AppendUint32(digest, word)
		}
		want := sha256.Sum256(message)
		require.Equal(t, want[:], digest, length)
	}
}

func TestCRC32IsTheStandardOne(t *testing.T) {
	source := random(2)
	require.Equal(t, uint64(crc32.ChecksumIEEE(source.bytes(crcBlock))), CRC32(1))
}

func TestMultiply(t *testing.T) {
	require.Equal(t, []float64{19, 22, 43, 50}, multiply([]float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}, 2))
}

func TestNBodyKeepsItsEnergy(t *testing.T) {
	bodies := []body{
		{mass: 1},
		{mass: 1e-6, position: vector{x: 1}, velocity: vector{y: 1}}, // a circle with a period of 2π
	}
	before := energy(bodies)
	for range 1000 {
		step(bodies, 2*math.Pi/1000)
	}
	require.InEpsilon(t, before, energy(bodies), 1e-4)
	require.InDelta(t, 1, bodies[1].position.x, 0.02)
	require.InDelta(t, 0, bodies[1].position.y, 0.02)
}

func TestSieveFindsThePrimes(t *testing.T) {
	require.Equal(t, mix(mix(checksumSeed, 4), 2+3+5+7), Sieve(11))
	require.Equal(t, mix(mix(checksumSeed, 168), 76127), Sieve(1000))
}

func TestFannkuchSeesEveryOrder(t *testing.T) {
	p := pancakes{order: []int{0, 1, 2, 3, 4, 5, 6}, turned: make([]int, 7)}
	p.permute(7)
	require.Equal(t, uint64(5040), p.orders)
	require.Equal(t, uint64(16), p.most)
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6}, p.order)
}

func TestQuicksortSorts(t *testing.T) {
	source := random(9)
	for length := range 50 {
		records := make([]record, length)
		for i := range records {
			records[i] = record{source.next() % 8, uint32(i)}
		}
		want := slices.SortedFunc(slices.Values(records), func(a, b record) int {
			return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.index, b.index))
		})
		quicksort(records, before)
		require.Equal(t, want, slices.AppendSeq([]record(nil), slices.Values(records)))
	}
}

func TestParserReadsWhatTheStandardOneReads(t *testing.T) {
	text := writeJSON(20)
	var want any
	require.NoError(t, json.Unmarshal(text, &want))
	p := parser{text: text}
	root, ok := p.document()
	require.True(t, ok)
	require.Equal(t, want, p.plain(root))
}

func TestParserRefuses(t *testing.T) {
	for _, text := range []string{
		"", " ", "nul", "-", ".5", "[", "[1", "[1,", "[1 2]", "{", `{"a"}`, `{"a":}`, `{1:2}`, `{"a":1,}`,
		`"`, `"\`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\ud800"`, "\"\n\"", "1 2", "[]]",
	} {
		p := parser{text: []byte(text)}
		_, ok := p.document()
		require.False(t, ok, text)
	}
}

// plain returns the value as encoding/json would.
func (p *parser) plain(at uint32) any {
	v := p.values[at]
	var children []any
	for child := v.child; child != none; child = p.values[child].next {
		children = append(children, p.plain(child))
	}
	switch v.kind {
	case kindFalse, kindTrue:
		return v.kind == kindTrue
	case kindNumber:
		return v.number
	case kindString:
		return string(p.strings[v.start:v.end])
	case kindArray:
		return append([]any{}, children...)
	case kindObject:
		members := map[string]any{}
		for i := 0; i < len(children); i += 2 {
			members[children[i].(string)] = children[i+1]
		}
		return members
	}
	return nil
}

func TestTableCounts(t *testing.T) {
	counts, want := table{slots: make([]slot, 16)}, map[string]uint64{}
	source := random(10)
	for range 5000 {
		name := appendName(nil, source.next()%1000)
		counts.add(name)
		want[string(name)]++
	}
	require.Equal(t, len(want), counts.used)
	for name, count := range want {
		require.Equal(t, count, counts.count([]byte(name)), name)
	}
	require.Zero(t, counts.count([]byte("nobody")))
}

func TestEscapeTime(t *testing.T) {
	require.Equal(t, uint64(escapeLimit), escapeTime(0, 0))
	require.Equal(t, uint64(escapeLimit), escapeTime(-1, 0))
	require.Equal(t, uint64(1), escapeTime(3, 0))
}

func TestDistance(t *testing.T) {
	require.Equal(t, uint32(3), distance([]byte("kitten"), []byte("sitting")))
	require.Equal(t, uint32(4), distance(nil, []byte("abcd")))
	require.Equal(t, uint32(0), distance(bytes.Repeat([]byte("ab"), 40), bytes.Repeat([]byte("ab"), 40)))
}
