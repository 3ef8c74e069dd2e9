// Package check finds mistakes in manifests, their modules and policies before anything runs: problems that keep a tool
// from working, and warnings about what is probably not intended. It is what "caisson validate" does.
package check
