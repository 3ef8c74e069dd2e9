// Package tools has the tools that come with Caisson. Their manifests and sources are in the folders below.
package tools

import "embed"

// Scripts holds the folders that have nothing but a script and its manifest, tool.yaml.
//
//go:embed execute_javascript execute_python
var Scripts embed.FS
