package secrets

import "github.com/caisson-run/caisson/internal/masking"

// ParseLines is parseLines, for tests.
func ParseLines(text string) (map[string]string, error) { return parseLines(text) }

const (
	MaxBetween = masking.MaxBetween
	MaxValue   = maxValue
)

func (s *Set) Exists(name string) bool { exists, _ := s.Check(name); return exists }

func (s *Set) MaskText(text string) string { return string(s.Mask([]byte(text))) }
