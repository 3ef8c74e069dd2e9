// Package benchmark measures Caisson beside the alternatives on the machine that it runs on:
// the same small tool natively, on plain wazero, on Extism's Go SDK and in Caisson's sandbox;
// what metering costs; and what memory and start-up take.
//
//	report, err := benchmark.Run(ctx, benchmark.Options{Compiler: compiler})
//	_, err = io.WriteString(w, report.Text())
//
// Schemes that are compared take turns on the same input, so that what else the machine
// does meets all of them, and every answer is checked. Only ratios carry over to another
// machine.
package benchmark
