// Command spin is a tool that loops forever.
package main

func main() {
	// n is always odd and so never 0, but the compiler cannot tell.
	for n := uint32(1); n != 0; {
		n = (n*1664525 + 1013904223) | 1
	}
}
