// Command hoard is a tool that allocates all the memory it can get.
package main

import "fmt"

func main() {
	const block, page = 4 << 20, 4 << 10
	var hoard [][]byte
	for len(hoard) < 1<<20 {
		bytes := make([]byte, block)
		for i := 0; i < block; i += page {
			bytes[i] = 1
		}
		hoard = append(hoard, bytes)
	}
	fmt.Println(len(hoard)*block, "bytes of memory taken")
}
