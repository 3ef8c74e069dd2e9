package secrets

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caisson-run/caisson/manifests"
)

// checkValue refuses values that could not stand in a request as they are, since another
// form on the wire would not be the one that is masked, and those too short to be masked.
func checkValue(grant manifests.SecretGrant, place manifests.SecretPlace, value string) error {
	problem := ""
	switch {
	case value == "":
		problem = "the value is empty"
	case len(value) > MaxValue:
		problem = fmt.Sprintf("the value is longer than %d KiB", MaxValue>>10)
	case !utf8.ValidString(value):
		problem = "the value is not valid UTF-8"
	case strings.ContainsFunc(value, unicode.IsControl):
		problem = "the value holds a line break or another control character"
	case strings.TrimSpace(value) != value:
		problem = "the value begins or ends with a space"
	case place.Header != "" && strings.ContainsFunc(value, func(r rune) bool { return r > unicode.MaxASCII }):
		problem = "the value goes into a header and is not ASCII"
	case len(value) < MinValue && !grant.Force:
		problem = fmt.Sprintf("the value is shorter than %d bytes, so responses cannot be masked for it; use a longer one, or say force: true in the grant", MinValue)
	default:
		return nil
	}
	return &Error{Op: "read", Name: grant.Name, Origin: grant.Origin, Kind: ErrValue, Message: problem}
}
