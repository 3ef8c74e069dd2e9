package permission

import (
	"errors"
	"fmt"

	"github.com/caisson-run/caisson/tool"
)

// ErrInvalid is what every [*Error] matches.
var ErrInvalid = errors.New("not a permission")

// Error says why a text cannot be read.
type Error struct {
	What    string // what should have been read, such as "host"
	Text    string // as it was given; it may be anything
	Problem string // what is wrong with it, to stand behind the text: "has a zone"
	Fix     string // what to write instead
}

const maxShown = 128 // bytes of a text that an error's message shows

// Error returns a line for people: `host "fe80::1%eth0" has a zone`.
func (e *Error) Error() string {
	return fmt.Sprintf("%s %q %s", e.What, tool.Shown(e.Text, maxShown), e.Problem)
}

// Unwrap returns [ErrInvalid].
func (e *Error) Unwrap() error { return ErrInvalid }

// isVisible reports whether whoever reads a text sees all of it, and in its order. A blank
// Braille cell (U+2800) is a character to Unicode and a gap to people.
func isVisible(text string) bool {
	for _, r := range text {
		if r == '\u2800' {
			return false
		}
	}
	return tool.Shown(text, len(text)) == text
}
