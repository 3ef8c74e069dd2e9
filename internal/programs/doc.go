// Package programs makes random WebAssembly modules of whose runs everything is known: those
// that never end, and those that end and of which a plain interpreter says what they take and
// what they do. The engine's tests run them to see that metering neither misses a loop nor
// miscounts, and that what it adds changes nothing.
//
// The package knows nothing of how modules are metered. Its cost model is that of the
// documentation: an executed instruction costs 1; block, loop, else, end and nop are free;
// memory.grow and table.grow cost 4,096; bulk operations cost 1, and 1 for each 16 bytes or
// each table element.
package programs
