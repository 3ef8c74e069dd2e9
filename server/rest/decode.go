package rest

import (
	"cmp"
	"errors"
	"net/http"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/tool"
)

// maxDepth is how deeply a body may be nested: arguments may be as deep as tools accept, within a list within an
// object.
const maxDepth = tool.MaxArgumentsDepth + 8

// decodeObject reads an object whose members are all known. The error is a refusal.
func decodeObject(text string, members decode.Members) error {
	if !utf8.ValidString(text) {
		return refuse(http.StatusBadRequest, "the body is not valid UTF-8")
	}
	document, err := jsontext.Parse(text, jsontext.Limits{Depth: maxDepth})
	if at, ok := errors.AsType[*jsontext.Error](err); ok {
		where := pathOf(at.Path)
		if where != "" {
			where = ", in " + where
		}
		return refuse(http.StatusBadRequest, "the body cannot be read at byte %d: %s%s", at.Offset, at, where)
	}
	if err == nil {
		err = decode.Object(document.Root(), members)
	}
	if wrong, ok := errors.AsType[*decode.Error](err); ok {
		return refuseValue(http.StatusBadRequest, wrong.Path, wrong.Problem)
	}
	return err
}

// refuseValue refuses a value of a body.
func refuseValue(status int, path []jsontext.Step, problem string) error {
	return refuse(status, "%s %s", cmp.Or(pathOf(path), "the body"), problem)
}

// pathOf writes a path for people.
func pathOf(path []jsontext.Step) string {
	return jsontext.Key(path, func(name string) string { return tool.Shown(name, 64) })
}
