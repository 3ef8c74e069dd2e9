// Package openaitest checks what this project writes and reads against OpenAI's own client. It has only
// tests, and is a separate Go module, so that nothing else depends on that client.
package openaitest
