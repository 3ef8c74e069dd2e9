package pieces

// Arguments are a call's arguments, or a piece of them. They are a JSON string by the
// documentation; some servers send the object itself, of which the text is taken as it is.
type Arguments struct{ Text }

// UnmarshalJSON reads any JSON value.
func (a *Arguments) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"', 'n':
		return a.Text.UnmarshalJSON(data)
	}
	a.Text = NewText(string(data))
	return nil
}
