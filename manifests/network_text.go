package manifests

import (
	"strconv"
	"strings"
)

// String returns the permission on one line, for people: "GET https://*.example.com:443/v1".
// Several values stand side by side with commas; the path / is left out.
func (p NetworkPermission) String() string {
	p = p.complete()
	var b strings.Builder
	b.WriteString(strings.Join(p.Methods, ",") + " " + strings.Join(p.Schemes, ",") + "://")
	if strings.Contains(p.Host, ":") {
		b.WriteString("[" + p.Host + "]")
	} else {
		b.WriteString(p.Host)
	}
	for i, port := range p.Ports {
		b.WriteString(separator(i, ":") + strconv.Itoa(port))
	}
	if len(p.Paths) != 1 || p.Paths[0] != "/" {
		b.WriteString(strings.Join(p.Paths, ","))
	}
	return b.String()
}

// separator returns what stands before the element of a list.
func separator(i int, first string) string {
	if i == 0 {
		return first
	}
	return ","
}
