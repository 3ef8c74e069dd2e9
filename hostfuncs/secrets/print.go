package secrets

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// String returns the names of the secrets in effect.
func (s Set) String() string { return "secrets.Set(" + strings.Join(s.Names(), ", ") + ")" }

// GoString is String.
func (s Set) GoString() string { return s.String() }

// Format writes String, whatever the verb.
func (s Set) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, s.String()) }

// MarshalJSON writes the names of the secrets in effect, as a list.
func (s Set) MarshalJSON() ([]byte, error) { return json.Marshal(s.Names()) }

// LogValue is String.
func (s Set) LogValue() slog.Value { return slog.StringValue(s.String()) }
