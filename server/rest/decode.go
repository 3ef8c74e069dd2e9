package rest

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/tool"
)

// maxDepth is the maximum nesting of a body: arguments may be as deep as tools accept, within a list within an
// object.
const maxDepth = tool.MaxArgumentsDepth + 8

// decode reads the body strictly.
func (x *exchange) decode(members decode.Members) error { return decodeObject(string(x.body), members) }

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

// noAgent is the reason why an empty name of an agent is refused: without an agent, a caller may call all tools.
const noAgent = "is empty: name an agent, or leave it out"

// readQuery reads the parameters of the query, each of which must be one of the route's and given once.
func (x *exchange) readQuery() (err error) {
	if x.query, err = url.ParseQuery(x.request.URL.RawQuery); err != nil {
		return refuse(http.StatusBadRequest, "the query cannot be read")
	}
	for name, given := range x.query {
		switch {
		case !slices.Contains(x.route.query, name):
			return refuse(http.StatusBadRequest, "there is no parameter %.64q here", name)
		case len(given) > 1:
			return refuse(http.StatusBadRequest, "the parameter %s is given more than once", name)
		case name == "agent" && given[0] == "":
			return refuse(http.StatusBadRequest, "agent %s", noAgent)
		}
	}
	return nil
}

// integer returns a parameter from 0 to most, or the fallback without it.
func integer(query url.Values, name string, fallback, most int64) (int64, error) {
	given := query.Get(name)
	if given == "" {
		return fallback, nil
	}
	n, err := strconv.ParseInt(given, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, refuse(http.StatusBadRequest, "%s must be an integer from 0 to %d", name, most)
	}
	return n, nil
}

func boolean(query url.Values, name string) (bool, error) {
	switch query.Get(name) {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, refuse(http.StatusBadRequest, "%s must be true or false", name)
}
