package schema

import (
	"net/url"
	"strings"
)

// checkReferences refuses references that leave the schema, or lead to what is not
// known to be a schema and therefore was not checked.
func (v *vetter) checkReferences() {
	anchors := map[string]bool{}
	for _, keywords := range v.schemas {
		for _, keyword := range [...]string{"$anchor", "$dynamicAnchor"} {
			if name, isString := keywords[keyword].(string); isString {
				anchors["#"+name] = true
			}
		}
	}
	for _, r := range v.references {
		switch {
		case !strings.HasPrefix(r.target, "#"):
			v.problem(r.path, "%q is outside of the schema; only references that start with # work", clip(r.target))
		case r.target == "#" || anchors[r.target]:
		case !strings.HasPrefix(r.target, "#/"):
			v.problem(r.path, "no schema has the anchor %q", clip(r.target))
		default:
			v.checkPointer(r)
		}
	}
}

func (v *vetter) checkPointer(r reference) {
	tokens, valid := parsePointer(r.target[1:])
	target, found := v.schemas[joinPointer(tokens)]
	switch {
	case !valid || !found:
		v.problem(r.path, "no schema stands at %q", clip(r.target))
	case v.draft < draft2019 && target["$ref"] != nil:
		// Drafts 6 and 7 see nothing but the reference in such a schema, the meter
		// included, so a chain of them would be free of charge.
		v.problem(r.path, "%q is a reference itself; refer to its target", clip(r.target))
	}
}

// parsePointer splits a JSON pointer as it stands in a URI fragment (RFC 6901,
// section 6).
func parsePointer(pointer string) (tokens []string, valid bool) {
	if pointer == "" {
		return nil, true
	}
	if pointer[0] != '/' {
		return nil, false
	}
	for _, token := range strings.Split(pointer[1:], "/") {
		text, err := url.PathUnescape(token)
		if err != nil {
			return nil, false
		}
		tokens = append(tokens, strings.ReplaceAll(strings.ReplaceAll(text, "~1", "/"), "~0", "~"))
	}
	return tokens, true
}

func joinPointer(tokens []string) string {
	var b strings.Builder
	for _, token := range tokens {
		b.WriteString("/" + escapePointer(token))
	}
	return b.String()
}

func escapePointer(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
}
