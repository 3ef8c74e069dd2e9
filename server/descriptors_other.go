//go:build !unix

package server

import "math"

// maxDescriptors returns how many descriptors the process may have. Other systems have no such limit.
func maxDescriptors() int { return math.MaxInt32 }
