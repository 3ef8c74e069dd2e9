package dialects

// The bounds of what is read from a provider. What exceeds one is refused with an [*Error].
const (
	MaxDocument  = 8 << 20 // bytes of a response, or of all the data of one stream
	MaxCalls     = 4096    // calls in one response, and answers in one document
	MaxParts     = 4096    // parts of what one call came to, in a document of answers
	MaxArguments = 1 << 20 // bytes of one call's arguments
	MaxEvent     = 8 << 20 // bytes of one server-sent event
)
