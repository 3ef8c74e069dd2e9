package wasm

import "fmt"

// Bounds are the most that a module may hold of each thing. In each field zero means the
// default, which the comment gives, and a negative value is an error.
//
// The defaults start from the limits that engines on the web agree on (WebAssembly
// JavaScript Interface, "Implementation-defined Limits") and are tighter where the
// compiler or an instance pays dearly for each. They leave room above the largest
// programs measured: the Go compiler, built for wasip1, is a module of 49 MB whose
// largest body has 666,326 bytes and which has 90,795 locals and 100,000 data segments,
// the most that Go's linker makes; CPython 3.12 is one of 26 MB with 106,184 bytes,
// 17,020 locals (187 in one function) and 24,171 segments.
type Bounds struct {
	Types             int // 100,000
	Params            int // 1,000 for each type
	Results           int // 1,000 for each type
	Imports           int // 10,000
	Functions         int // 1,000,000, imports not counted
	BodyBytes         int // 2 MiB for each function
	LocalsPerFunction int // 50,000, parameters not counted
	Locals            int // 1,000,000 in all functions together
	Tables            int // 100, imports not counted
	TableElements     int // 1,000,000: the sum of the tables' minimums
	Globals           int // 100,000, imports not counted
	Exports           int // 100,000
	ElementSegments   int // 100,000
	DataSegments      int // 100,000
	CustomSections    int // 1,000
	NameBytes         int // 100,000 for each name
}

// withDefaults returns the bounds with the defaults in place of zeros.
func (b Bounds) withDefaults() (Bounds, error) {
	for _, field := range []struct {
		name     string
		value    *int
		standard int
	}{
		{"Types", &b.Types, 100_000},
		{"Params", &b.Params, 1_000},
		{"Results", &b.Results, 1_000},
		{"Imports", &b.Imports, 10_000},
		{"Functions", &b.Functions, 1_000_000},
		{"BodyBytes", &b.BodyBytes, 2 << 20},
		{"LocalsPerFunction", &b.LocalsPerFunction, 50_000},
		{"Locals", &b.Locals, 1_000_000},
		{"Tables", &b.Tables, 100},
		{"TableElements", &b.TableElements, 1_000_000},
		{"Globals", &b.Globals, 100_000},
		{"Exports", &b.Exports, 100_000},
		{"ElementSegments", &b.ElementSegments, 100_000},
		{"DataSegments", &b.DataSegments, 100_000},
		{"CustomSections", &b.CustomSections, 1_000},
		{"NameBytes", &b.NameBytes, 100_000},
	} {
		if *field.value < 0 {
			return Bounds{}, fmt.Errorf("%w: %s is %d; want 0 for the default, or more", ErrBounds, field.name, *field.value)
		}
		if *field.value == 0 {
			*field.value = field.standard
		}
	}
	return b, nil
}
