package provider

import (
	"html"
	"strings"
)

// withoutMarkup removes the tags that services put around what was searched for, and reads
// the entities.
func withoutMarkup(text string) string {
	if strings.Contains(text, "<") {
		text = emphasis.Replace(text)
	}
	if strings.Contains(text, "&") {
		text = html.UnescapeString(text)
	}
	return text
}

var emphasis = strings.NewReplacer(
	"<strong>", "", "</strong>", "", "<b>", "", "</b>", "", "<em>", "", "</em>", "", "<mark>", "", "</mark>", "", "<br>", " ", "<br/>", " ",
)
