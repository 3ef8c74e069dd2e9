package schema

import (
	"fmt"
	"strings"
)

func list(element string, count int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", count), ",") + "]"
}

func numbered(format string, count int) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, ","+format, i)
	}
	return b.String()[1:]
}
