package repair

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/tool"
)

// Text reads the text of arguments that [tool.ParseArguments] has refused: a JSON string
// that holds the object and, if tolerant is set, an object that is almost JSON. It returns
// false for anything else.
func Text(text string, tolerant bool) (tool.Arguments, []tool.Repair, bool) {
	if len(text) > tool.MaxArgumentsBytes || !utf8.ValidString(text) {
		return tool.Arguments{}, nil, false
	}
	if json.Valid([]byte(text)) {
		from := strings.TrimSpace(text)
		if from[0] != '"' {
			return tool.Arguments{}, nil, false
		}
		var said string
		if err := json.Unmarshal([]byte(from), &said); err != nil {
			return tool.Arguments{}, nil, false
		}
		return fromText(ParseJSON, from, said)
	}
	if !tolerant {
		return tool.Arguments{}, nil, false
	}
	read, ok := readTolerant(text)
	if !ok {
		return tool.Arguments{}, nil, false
	}
	return fromText(TolerantJSON, Quote(text), read)
}

func fromText(rule Rule, from, object string) (tool.Arguments, []tool.Repair, bool) {
	arguments, err := tool.ParseArguments(object)
	if err != nil || strings.TrimSpace(object) == "" {
		return tool.Arguments{}, nil, false
	}
	to, err := arguments.MarshalJSON()
	if err != nil {
		return tool.Arguments{}, nil, false
	}
	return arguments, []tool.Repair{{Rule: string(rule), From: json.RawMessage(from), To: to}}, true
}
