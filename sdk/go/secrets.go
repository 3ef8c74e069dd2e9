package caisson

import "encoding/json"

// SecretExists reports whether the host has the secret of that name for this tool. The
// value stays with the host, which puts it into the requests that it belongs to. The error is
// an [*Error] or [ErrOutside]; it is [Denied] where the manifest does not ask for the secret.
func SecretExists(name string) (bool, error) {
	return secretExists(secretsExists(), name)
}

func secretExists(function hostFunction, name string) (bool, error) {
	response, err := function.ask(wireName{name}, nil)
	if err != nil {
		return false, err
	}
	var wire wireExists
	if err := json.Unmarshal(response, &wire); err != nil {
		return false, function.malformed()
	}
	return wire.Exists, nil
}

type wireName struct {
	Name string `json:"name"`
}

type wireExists struct {
	Exists bool `json:"exists"`
}
