//go:build !unix

package hostfile

// nonBlocking is nothing where opening a file by its path does not wait.
const nonBlocking = 0
