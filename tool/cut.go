package tool

// Cut says what was left out of one part of a result, because it was longer than what goes to
// a model.
type Cut struct {
	Part string `json:"part"` // output, error, data, or a part of the content, such as "content[2]"
	// Reference is by what the whole can be read; empty where it is not kept.
	Reference string `json:"reference"`
	Bytes     int64  `json:"bytes"` // of the whole
	Kept      int64  `json:"kept"`  // of the whole, that the result still has
}

// Page is a piece of a part that was cut.
type Page struct {
	Reference string `json:"reference"`
	Text      string `json:"text"`
	From      int64  `json:"from"`  // the first byte
	Next      int64  `json:"next"`  // where the next page begins; -1 where this is the last
	Total     int64  `json:"total"` // bytes of the whole
}
