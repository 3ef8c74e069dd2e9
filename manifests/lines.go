package manifests

import "strings"

// lineOf returns the line of the path or of its nearest ancestor in lines.
func lineOf(lines map[string]int, path string) int {
	for path != "" {
		if line, found := lines[path]; found {
			return line
		}
		path = parentPath(path)
	}
	return 0
}

// parentPath returns a path without its last step. Inside a quoted key it may return
// what is no path; its own parent is then nearer to one.
func parentPath(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}
