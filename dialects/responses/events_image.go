package responses

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// image is the item of a call that makes an image: in progress, then generating, with images that
// are not done yet, then completed, or failed before that.
type image struct {
	at         place
	item       imageItem
	generating bool
	partial    int            // how many images came that were not done
	latest     *tool.Emission // the latest image that was
}

func (e *Events) image(p *tool.Planned) running {
	i := &image{item: imageItem{ID: prefixImage + p.CallID, Type: "image_generation_call", Status: "in_progress"}}
	i.at = e.add(i.item.ID, i.item)
	e.step("image_generation_call.in_progress", i.at)
	return i
}

func (i *image) begin(e *Events) {
	if !i.generating {
		i.generating = true
		e.step("image_generation_call.generating", i.at)
	}
}

func (i *image) say(e *Events, emission *tool.Emission) {
	i.begin(e)
	if emission.Type != tool.EmitImage {
		return
	}
	if !emission.Partial {
		i.latest = emission
		return
	}
	if encoded, ok := base64Of(emission); ok {
		e.send(partialImageEvent{e.head("image_generation_call.partial_image"), i.at, i.partial, encoded, imageFormat(emission.MIMEType)})
		i.partial++
	}
}

func (i *image) end(e *Events, result *tool.Result) {
	if !result.Success {
		i.item.Status = "failed"
		e.done(i.at, i.item)
		return
	}
	i.begin(e)
	i.finish(result)
	e.step("image_generation_call.completed", i.at)
	i.item.Status = "completed"
	e.done(i.at, i.item)
}

// finish takes the image that the call came to: that of its result, or the last that it showed.
func (i *image) finish(result *tool.Result) {
	for n := range result.Content {
		if part := &result.Content[n]; len(part.Data) > 0 && strings.HasPrefix(part.MIMEType, "image/") {
			encoded := base64.StdEncoding.EncodeToString(part.Data)
			i.item.Result, i.item.Format = &encoded, imageFormat(part.MIMEType)
			return
		}
	}
	if i.latest == nil {
		return
	}
	if encoded, ok := base64Of(i.latest); ok {
		i.item.Result, i.item.Format = &encoded, imageFormat(i.latest.MIMEType)
	}
}

// base64Of returns the image that an emission holds, in base64 as it is.
func base64Of(emission *tool.Emission) (string, bool) {
	var encoded string
	err := json.Unmarshal(emission.Data, &encoded)
	return encoded, err == nil && encoded != ""
}

// imageFormat returns the API's word for a MIME type, or nothing where it has none.
func imageFormat(mimeType string) string {
	switch mimeType {
	case "image/png", "image/jpeg", "image/webp":
		return strings.TrimPrefix(mimeType, "image/")
	}
	return ""
}
