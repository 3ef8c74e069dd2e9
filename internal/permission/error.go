package permission

import (
	"errors"
	"fmt"

	"github.com/caisson-run/caisson/tool"
)

// ErrInvalid is matched by every [*Error].
var ErrInvalid = errors.New("not a permission")

// Error says why a text cannot be parsed.
type Error struct {
	What    string // the kind of text, such as "host"
	Text    string // the text as given, which may be anything
	Problem string // the mistake, to follow the text: "has a zone"
	Fix     string // what to write instead
}

const maxShown = 128 // maximum bytes of a text in an error message

// Error returns a line for people: `host "fe80::1%eth0" has a zone`.
func (e *Error) Error() string {
	return fmt.Sprintf("%s %q %s", e.What, tool.Shown(e.Text, maxShown), e.Problem)
}

// Unwrap returns [ErrInvalid].
func (e *Error) Unwrap() error { return ErrInvalid }

// isVisible reports whether a reader sees all of a text. A blank Braille cell (U+2800) is printable, but seen as a gap.
func isVisible(text string) bool {
	for _, r := range text {
		if r == '\u2800' {
			return false
		}
	}
	return tool.Shown(text, len(text)) == text
}
