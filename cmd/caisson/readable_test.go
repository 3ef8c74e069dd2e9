package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/tool"
)

func TestReadable(t *testing.T) {
	for want, result := range map[string]tool.Result{
		"":                {Success: true},
		"text\n":          {Output: "text", Data: []byte(`{"a":1}`)},
		"lines\nend\n":    {Output: "lines\nend\n"},
		"{\"a\":1}\n":     {Data: []byte(`{"a":1}`)},
		"text\nmore\n":    {Output: "text", Content: []tool.Content{{Type: "text", Text: "more"}}},
		"[link: x://y]\n": {Content: []tool.Content{{Type: "link", URL: "x://y"}}},
		"[image a.png, 3 bytes; --json has them]\n":     {Content: []tool.Content{{Type: "image", Name: "a.png", MIMEType: "image/png", Data: []byte("abc")}}},
		"[image image/png, 0 bytes; --json has them]\n": {Content: []tool.Content{{Type: "image", MIMEType: "image/png"}}},
	} {
		assert.Equal(t, want, readable(result))
	}
}
