package exact

import "bytes"

// Trimmed returns a document without what stands around it: white space, and the byte order mark
// that some shells write before what they pass on.
func Trimmed(document []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(document, []byte("\uFEFF")))
}

// First returns the first character of a document, 0 where there is none.
func First(document []byte) byte {
	if document = Trimmed(document); len(document) > 0 {
		return document[0]
	}
	return 0
}

// IsTranscript returns whether a document is to be read as the events of a stream, which do not
// begin as JSON does. An empty one is read as JSON, which it is not.
func IsTranscript(document []byte) bool {
	switch First(document) {
	case '{', '[', 0:
		return false
	}
	return true
}
