// Command spin is a tool that never comes back.
package main

func main() {
	// Always odd, so never 0, which the compiler does not find out.
	for n := uint32(1); n != 0; {
		n = (n*1664525 + 1013904223) | 1
	}
}
