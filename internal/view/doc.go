// Package view describes tools, calls and manifests as the command prints them: as JSON, and as text for people. Its
// callers pass the described values; it runs nothing.
package view
