// Package check finds mistakes in manifests, their modules and policies before anything runs: problems that keep a tool
// from working, and warnings about entries that are probably not intended. The command "caisson validate" prints its
// report.
package check
