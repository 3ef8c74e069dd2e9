// Package view describes tools, calls and manifests as the command prints them: as JSON, and as text for people. It is
// given what it describes, and runs nothing.
package view
