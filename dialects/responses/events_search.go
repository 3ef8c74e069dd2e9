package responses

import (
	"encoding/json"

	"github.com/caisson-run/caisson/tool"
)

// search is what the items of searches have in common: a search is in progress, then searching, then
// completed, or failed before that.
type search struct {
	kind      string // web_search_call or file_search_call
	at        place
	searching bool
}

// begin says once that a search goes on.
func (s *search) begin(e *Events) {
	if !s.searching {
		s.searching = true
		e.step(s.kind+".searching", s.at)
	}
}

// end returns the status of the item.
func (s *search) end(e *Events, result *tool.Result) string {
	if !result.Success {
		return "failed"
	}
	s.begin(e)
	e.step(s.kind+".completed", s.at)
	return "completed"
}

// webSearch is the item of a call that searches the web.
type webSearch struct {
	search
	item webSearchItem
	seen map[string]bool // URLs of sources
}

// maxSources bounds the sources that one item lists.
const maxSources = 256

func (e *Events) webSearch(p *tool.Planned) running {
	asked := queries(p)
	w := &webSearch{
		search: search{kind: "web_search_call"}, seen: map[string]bool{},
		item: webSearchItem{ID: prefixWeb + p.CallID, Type: "web_search_call", Status: "in_progress", Action: searchAction{Type: "search", Queries: asked}},
	}
	if len(asked) > 0 {
		w.item.Action.Query = asked[0]
	}
	w.at = e.add(w.item.ID, w.item)
	e.step("web_search_call.in_progress", w.at)
	return w
}

func (w *webSearch) say(e *Events, emission *tool.Emission) {
	w.begin(e)
	var link string
	if emission.Type == tool.EmitLink && json.Unmarshal(emission.Data, &link) == nil {
		w.source(link)
	}
}

func (w *webSearch) source(link string) {
	if link == "" || w.seen[link] || len(w.item.Action.Sources) == maxSources {
		return
	}
	w.seen[link] = true
	w.item.Action.Sources = append(w.item.Action.Sources, source{"url", link})
}

func (w *webSearch) end(e *Events, result *tool.Result) {
	for i := range result.Content {
		if part := &result.Content[i]; part.Type == "link" {
			w.source(part.URL)
		}
	}
	w.item.Status = w.search.end(e, result)
	e.done(w.at, w.item)
}

// fileSearch is the item of a call that searches files.
type fileSearch struct {
	search
	item fileSearchItem
}

func (e *Events) fileSearch(p *tool.Planned) running {
	f := &fileSearch{
		search: search{kind: "file_search_call"},
		item:   fileSearchItem{ID: prefixFiles + p.CallID, Type: "file_search_call", Status: "in_progress", Queries: queries(p)},
	}
	f.at = e.add(f.item.ID, f.item)
	e.step("file_search_call.in_progress", f.at)
	return f
}

func (f *fileSearch) say(e *Events, _ *tool.Emission) { f.begin(e) }

func (f *fileSearch) end(e *Events, result *tool.Result) {
	f.item.Status = f.search.end(e, result)
	if result.Success {
		f.item.Results = found(result.Data)
	}
	e.done(f.at, f.item)
}

// queries returns what a call searches for, by the usual names of that argument. It is not nil.
func queries(p *tool.Planned) []string {
	if p.Type == tool.CustomCall {
		return []string{p.Arguments}
	}
	all := []string{}
	arguments, err := tool.ParseArguments(p.Arguments)
	if err != nil {
		return all
	}
	if list, ok := arguments.Get("queries"); ok && json.Unmarshal(list, &all) == nil && len(all) > 0 {
		return all
	}
	for _, name := range []string{"query", "q"} {
		var query string
		if value, ok := arguments.Get(name); ok && json.Unmarshal(value, &query) == nil && query != "" {
			return []string{query}
		}
	}
	return []string{}
}

// found returns the files that data lists in the form of the API, by themselves or as "results",
// or nil where it has another form.
func found(data json.RawMessage) []foundFile {
	var list []listedFile
	if json.Unmarshal(data, &list) != nil {
		var within struct {
			Results []listedFile `json:"results"`
		}
		if json.Unmarshal(data, &within) != nil {
			return nil
		}
		list = within.Results
	}
	if list == nil {
		return nil
	}
	files := make([]foundFile, len(list))
	for i, l := range list {
		if l.FileID == "" && l.FileName == "" || l.Score == nil {
			return nil
		}
		files[i] = foundFile{l.FileID, l.FileName, *l.Score, l.Text, l.attributes()}
	}
	return files
}

// listedFile is a file as data may list it.
type listedFile struct {
	FileID     string                     `json:"file_id"`
	FileName   string                     `json:"filename"`
	Score      *float64                   `json:"score"`
	Text       string                     `json:"text"`
	Attributes map[string]json.RawMessage `json:"attributes"`
}

// attributes returns those that the API has a form for: texts, numbers and truth values.
func (l *listedFile) attributes() map[string]json.RawMessage {
	scalars := map[string]json.RawMessage{}
	for name, value := range l.Attributes {
		if len(value) > 0 && value[0] != '{' && value[0] != '[' && value[0] != 'n' {
			scalars[name] = value
		}
	}
	return scalars
}
