package responses

import (
	"slices"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// restored puts what was shown as parts of their own back to where it stands in a result's content,
// which says all of it but the data. Both are in the same order. What has no place in the content
// comes behind it.
func restored(content, shown []tool.Content) []tool.Content {
	whole := slices.Clone(content)
	for i := range whole {
		if len(shown) > 0 && belongs(&whole[i], &shown[0]) {
			whole[i].Data = shown[0].Data
			shown = shown[1:]
		}
	}
	return append(whole, shown...)
}

// belongs returns whether a part shows this of a result's content: the data, or else what stands
// at the URL.
func belongs(content, part *tool.Content) bool {
	if len(content.Data) > 0 || !isShown(content.MIMEType) {
		return false
	}
	if len(part.Data) > 0 {
		return part.MIMEType == content.MIMEType
	}
	return part.URL != "" && part.URL == content.URL && strings.HasPrefix(part.URL, "https://")
}
