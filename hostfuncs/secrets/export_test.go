package secrets

// ParseLines is parseLines, for tests.
func ParseLines(text string) (map[string]string, error) { return parseLines(text) }
