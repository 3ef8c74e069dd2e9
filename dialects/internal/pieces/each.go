package pieces

import (
	"encoding/json"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/wire"
)

// maxElements bounds each list of a document. Beside calls there are messages and other items.
const maxElements = 2 * dialects.MaxCalls

// Each is [wire.Reader.Each] for lists that are not longer than a response can have.
func Each(r wire.Reader, path string, list json.RawMessage, visit func(path string, index int, element json.RawMessage) error) error {
	return r.Each(path, list, func(at string, index int, element json.RawMessage) error {
		if index >= maxElements {
			return r.Fail(path, "has more than %d elements", maxElements)
		}
		return visit(at, index, element)
	})
}
