package schema

import "github.com/caisson-run/caisson/manifests/internal/keypath"

// MemberPath returns the path, as in [Violation], of a member of the object at path.
func MemberPath(path, name string) string { return keypath.Key(path, name) }

// ElementPath returns the path, as in [Violation], of an element of the array at path.
func ElementPath(path string, index int) string { return keypath.Index(path, index) }
