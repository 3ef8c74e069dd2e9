// Command hoard is a tool that takes all the memory it can get.
package main

import "fmt"

func main() {
	var hoard [][]byte
	for len(hoard) < 1<<20 {
		block := make([]byte, 1<<20)
		for i := range block {
			block[i] = 1
		}
		hoard = append(hoard, block)
	}
	fmt.Println(len(hoard), "MiB of memory taken")
}
