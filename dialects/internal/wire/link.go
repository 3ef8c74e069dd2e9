package wire

import (
	"encoding/base64"
	"mime"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// Linked adds a part that stands at a URL. What a data URL holds is taken out of it.
func (o *Outcome) Linked(r Reader, path, link string, part tool.Content) error {
	inside, isData := strings.CutPrefix(link, "data:")
	switch {
	case link == "":
		return r.Fail(path, "is missing; want a URL")
	case !isData:
		part.URL = link
		o.Part(part)
		return nil
	}
	about, encoded, found := strings.Cut(inside, ",")
	kind, isBase64 := strings.CutSuffix(about, ";base64")
	data, err := base64.StdEncoding.DecodeString(encoded)
	if !found || !isBase64 || err != nil {
		return r.Fail(path, "is not a data URL with base64: want data:image/png;base64,…")
	}
	// Parameters are of no use to whoever looks at it.
	if part.MIMEType, _, err = mime.ParseMediaType(kind); err != nil {
		return r.Fail(path, "is a data URL without a MIME type: want data:image/png;base64,…")
	}
	part.Data = data
	o.Part(part)
	return nil
}
