package extism

import (
	"strings"

	"github.com/caisson-run/caisson/manifests"
)

// places say of which member of a manifest of Extism the keys of the translated manifests are made.
// A key that is not below one of these has no place of its own.
var places = []struct{ key, member string }{
	{"module.sha256", "hash"},
	{"module.config", "config"},
	{"module", "path"},
	{"permissions.network", "allowed_hosts"},
	{"permissions.files", "allowed_paths"},
	{"limits.memory", "max_pages"},
	{"limits.http_bytes", "max_http_response_bytes"},
	{"limits.timeout", "timeout_ms"},
}

// Place returns a problem of one of the manifests as one of the manifest of Extism: at the member of
// which the key was made, or at the beginning.
func (t *Translated) Place(p manifests.Problem) manifests.Problem {
	for _, place := range places {
		if p.Path == place.key || strings.HasPrefix(p.Path, place.key+".") || strings.HasPrefix(p.Path, place.key+"[") {
			return t.from.problem(place.member, p.Kind, p.Message, p.Fix)
		}
	}
	return t.from.problem("", p.Kind, p.Message, p.Fix)
}
