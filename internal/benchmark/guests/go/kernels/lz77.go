package kernels

import (
	"bytes"
	"encoding/binary"
)

const (
	lzWindow   = 1 << 15 // how far back a match may begin
	lzHashBits = 13
	lzShortest = 4 // letters, which the hash is of
	lzLongest  = 258
	lzTries    = 16 // earlier places that are compared
)

// LZ77 packs a text of size letters and unpacks it again.
func LZ77(size int32) uint64 {
	text := writeText(int(max(size, 0)))
	packed := pack(text)
	unpacked, ok := unpack(packed)
	if !ok || !bytes.Equal(unpacked, text) {
		return 0
	}
	checksum := mix(checksumSeed, uint64(len(packed)))
	for _, b := range packed {
		checksum = mix(checksum, uint64(b))
	}
	return checksum
}

// writeText makes a text out of a few hundred words, of which some are frequent.
func writeText(length int) []byte {
	source := random(9)
	words := make([][]byte, 256)
	for i := range words {
		word := make([]byte, 2+source.next()%8)
		for j := range word {
			word[j] = 'a' + byte(source.next()%26)
		}
		words[i] = word
	}
	text := make([]byte, 0, length)
	for len(text) < length {
		number := source.next()
		word := words[number&(number>>8)&255]
		text = append(text, word[:min(len(word), length-len(text))]...)
		if len(text) < length {
			text = append(text, separator(number>>24))
		}
	}
	return text
}

func separator(number uint32) byte {
	switch {
	case number < 16:
		return '\n'
	case number < 48:
		return ','
	}
	return ' '
}

// packer finds earlier places by a hash of the letters there.
type packer struct {
	text   []byte
	packed []byte
	newest []int32 // by hash: the last place, or -1
	older  []int32 // by place within the window: the one before with the same hash, or -1
}

// pack writes, in turns, literal letters after their number, and a match: its length beyond the shortest, and how far
// back it begins. Numbers are LEB128.
func pack(text []byte) []byte {
	p := packer{text: text, newest: make([]int32, 1<<lzHashBits), older: make([]int32, lzWindow)}
	for i := range p.newest {
		p.newest[i] = -1
	}
	plain := 0 // where the letters begin that no match covers
	for at := 0; at+lzShortest <= len(text); {
		length, distance := p.longest(at)
		if length < lzShortest {
			p.enter(at)
			at++
			continue
		}
		p.literals(plain, at)
		p.packed = binary.AppendUvarint(p.packed, uint64(length-lzShortest))
		p.packed = binary.AppendUvarint(p.packed, uint64(distance))
		for end := at + length; at < end; at++ {
			p.enter(at)
		}
		plain = at
	}
	p.literals(plain, len(text))
	return p.packed
}

func (p *packer) literals(start, end int) {
	p.packed = binary.AppendUvarint(p.packed, uint64(end-start))
	p.packed = append(p.packed, p.text[start:end]...)
}

func (p *packer) hash(at int) uint32 {
	return binary.LittleEndian.Uint32(p.text[at:]) * 2654435761 >> (32 - lzHashBits)
}

// enter notes a place for later matches.
func (p *packer) enter(at int) {
	if at+lzShortest > len(p.text) {
		return
	}
	h := p.hash(at)
	p.older[at%lzWindow] = p.newest[h]
	p.newest[h] = int32(at)
}

// longest returns the longest match, and of several the nearest; zero without one.
func (p *packer) longest(at int) (length, distance int) {
	limit := min(len(p.text)-at, lzLongest)
	candidate := int(p.newest[p.hash(at)])
	for tries := 0; tries < lzTries && candidate >= 0 && at-candidate < lzWindow; tries++ {
		same := 0
		for same < limit && p.text[candidate+same] == p.text[at+same] {
			same++
		}
		if same > length {
			length, distance = same, at-candidate
		}
		candidate = int(p.older[candidate%lzWindow])
	}
	return length, distance
}

// unpacker reads what pack wrote, and refuses anything else.
type unpacker struct {
	packed []byte
	at     int
}

func unpack(packed []byte) (text []byte, ok bool) {
	u := unpacker{packed: packed}
	for {
		count, ok := u.number()
		if !ok || int(count) > len(packed)-u.at {
			return nil, false
		}
		text = append(text, packed[u.at:u.at+int(count)]...)
		u.at += int(count)
		if u.at == len(packed) {
			return text, true
		}
		length, ok := u.number()
		if !ok || length > lzLongest-lzShortest {
			return nil, false
		}
		distance, ok := u.number()
		if !ok || distance == 0 || int(distance) > len(text) {
			return nil, false
		}
		for range length + lzShortest { // letter by letter: a match may overlap its copy
			text = append(text, text[len(text)-int(distance)])
		}
	}
}

// number reads at most 28 bits, more than any number of ours has.
func (u *unpacker) number() (value uint32, ok bool) {
	for shift := 0; shift < 28 && u.at < len(u.packed); shift += 7 {
		b := u.packed[u.at]
		u.at++
		value |= uint32(b&127) << shift
		if b < 128 {
			return value, true
		}
	}
	return 0, false
}
