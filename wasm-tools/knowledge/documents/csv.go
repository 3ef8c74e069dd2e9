package documents

import "bytes"

// csvLine takes a line of a CSV file into the chunk. A line break in quotes does not end a record.
func (s *splitter) csvLine(line []byte) error {
	if bytes.Count(line, []byte(`"`))%2 == 1 {
		s.isQuoted = !s.isQuoted
	}
	s.pass(line)
	if s.isQuoted {
		return nil
	}
	record := s.buffer[s.start:s.next]
	switch {
	case isBlank(line):
	case s.hasHeader:
		s.records++
	default:
		s.hasHeader = true
		if record = bytes.TrimSpace(record); len(record) <= maxHeader {
			s.header = bytes.Clone(record)
			s.start, s.startLine = s.next, s.lines
		}
	}
	s.record, s.recordLine = s.next, s.lines
	return nil
}
