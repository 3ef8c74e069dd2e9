package responses

import (
	"encoding/json"
	"strings"

	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// parts reads an output that is an array. The JSON of a result may stand first, behind which the
// images and files are that its content leaves out.
func (a answers) parts(path string, list json.RawMessage, failed bool) (tool.Result, error) {
	var all []tool.Content
	err := a.Parts(path, list, func(path string, _ int, element json.RawMessage) error {
		var p answeredPart
		if err := a.Reader.Into(path, element, &p); err != nil {
			return err
		}
		read, err := p.read(a.Reader, path)
		all = append(all, read)
		return err
	})
	if err != nil {
		return tool.Result{}, err
	}
	if len(all) > 1 && all[0].Type == "text" {
		if stored, ok := wire.Stored([]byte(all[0].Text)); ok && !(failed && stored.Success) {
			stored.Content = restored(stored.Content, all[1:])
			return stored, nil
		}
	}
	var outcome wire.Outcome
	for _, part := range all {
		if part.Type == "text" {
			outcome.Text(part.Text)
		} else {
			outcome.Part(part)
		}
	}
	return outcome.Result(failed), nil
}

// answeredPart is the union of the parts of an output.
type answeredPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL string `json:"image_url"`
	FileName string `json:"filename"`
	FileData string `json:"file_data"`
	FileURL  string `json:"file_url"`
	FileID   string `json:"file_id"`
}

// read returns what a part is of what a call came to.
func (p *answeredPart) read(r wire.Reader, path string) (tool.Content, error) {
	switch {
	case p.Type == "input_text" || p.Type == "output_text":
		return tool.Content{Type: "text", Text: p.Text}, nil
	case p.Type != "input_image" && p.Type != "input_file":
		return tool.Content{}, r.Fail(wire.Join(path, "type"), "is %q; want input_text, input_image or input_file", tool.Shown(p.Type, 64))
	case p.FileID != "":
		return tool.Content{}, r.Fail(wire.Join(path, "file_id"), "names a file that the provider keeps, which cannot be read here; send the data or a URL")
	case p.Type == "input_image":
		return linked(r, wire.Join(path, "image_url"), p.ImageURL, tool.Content{Type: "image"})
	}
	file := tool.Content{Type: "file", Name: p.FileName}
	if p.FileData == "" {
		return linked(r, wire.Join(path, "file_url"), p.FileURL, file)
	}
	if !strings.HasPrefix(p.FileData, "data:") {
		return tool.Content{}, r.Fail(wire.Join(path, "file_data"), "is no data URL; want data:application/pdf;base64,…")
	}
	return linked(r, wire.Join(path, "file_data"), p.FileData, file)
}

// linked returns the part that stands at a URL.
func linked(r wire.Reader, path, link string, part tool.Content) (tool.Content, error) {
	var outcome wire.Outcome
	if err := outcome.Linked(r, path, link, part); err != nil {
		return tool.Content{}, err
	}
	return outcome.Result(false).Content[0], nil
}
