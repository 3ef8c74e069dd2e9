package secrets

// ParseLines is parseLines, for tests.
func ParseLines(text string) (map[string]string, error) { return parseLines(text) }

const (
	MaxBetween = maxBetween
	MaxValue   = maxValue
)

func (s *Set) Exists(name string) bool { exists, _ := s.Check(name); return exists }
