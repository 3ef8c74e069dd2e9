// Package openaitest compares what this project writes and reads with OpenAI's own client. It is a Go
// module of its own, so that nothing else depends on that client, and has tests alone.
package openaitest
