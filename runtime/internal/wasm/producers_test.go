package wasm

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// producersOf is the section of a module that one language and some tools made.
func producersOf(language string, tools ...string) []byte {
	var processed [][]byte
	for _, tool := range tools {
		processed = append(processed, concat(name(tool), name("1.0")))
	}
	return custom("producers", vector(
		concat(name("sdk"), vector(concat(name("a kit"), name("2")))),
		concat(name("language"), vector(concat(name(language), name("2021")))),
		concat(name("processed-by"), vector(processed...))))
}

// checkProducers checks the properties of the result for any input.
func checkProducers(t *testing.T, names []string) {
	assert.LessOrEqual(t, len(names), maxProducers)
	for _, name := range names {
		assert.LessOrEqual(t, len(name), maxProducerBytes)
	}
}

// TestProducers: they are found in modules that are refused, too, and as far as they can be read.
func TestProducers(t *testing.T) {
	rust := producersOf("Rust", "rustc", "walrus", "rustc")
	want := []string{"Rust", "rustc", "walrus"}
	assert.Equal(t, want, Producers(module(rust)))
	assert.Equal(t, want, Producers(module(oneType, oneFunc, rust)), "without code")
	assert.Equal(t, want, Producers(module(section(sectionTag, vector(raw(0, 0))), rust)))
	assert.Equal(t, want, Producers(module(rust, producersOf("Rust"), custom("other"), section(99))))
	assert.Equal(t, want[:2], Producers(module(custom("producers", vector(
		concat(name("language"), vector(concat(name("Rust"), name("")))),
		concat(name("processed-by"), vector(concat(name("rustc"), name("")), concat(name("cut off")))))))))
	many := make([]string, 2*maxProducers)
	for i := range many {
		many[i] = strings.Repeat("a", i)
	}
	names := Producers(module(producersOf("", many...)))
	assert.Len(t, names, maxProducers)
	checkProducers(t, names)
	for _, none := range [][]byte{nil, module(), module(custom("producers")), []byte("\x00asm\x0d\x00\x01\x00"), module(custom("names", rust)), module()[:6]} {
		assert.Empty(t, Producers(none))
	}
}

// TestErrorsNameTheProposal: so that advice need not read their text.
func TestErrorsNameTheProposal(t *testing.T) {
	for _, source := range [][]byte{
		module(section(sectionTag, vector(raw(0, 0)))),
		module(section(SectionImport, vector(concat(name("m"), name("t"), raw(4, 0, 0))))),
		module(oneType, oneFunc, section(SectionCode, vector(body(concat(vector(), raw(0x08, 0, opEnd)))))),
	} {
		m, err := Inspect(source)
		if err == nil {
			_, err = Validate(source, m)
		}
		var rejected *Error
		assert.ErrorAs(t, err, &rejected)
		assert.Equal(t, ExceptionHandling, rejected.Proposal)
	}
	_, err := Inspect(module(section(sectionTag, claim), section(99)))
	var rejected *Error
	assert.ErrorAs(t, err, &rejected)
	assert.Equal(t, ExceptionHandling, rejected.Proposal)
	_, err = Inspect([]byte("text"))
	assert.ErrorAs(t, err, &rejected)
	assert.Empty(t, rejected.Proposal)
}
