package folder

// IsID reports whether a text is an id of a call or a batch, which is a UUID in lower case. If
// partly is set, prefixes pass too. Ids become file names, so nothing else may pass.
func IsID(text string, partly bool) bool {
	const form = "00000000-0000-0000-0000-000000000000"
	if len(text) > len(form) || !partly && len(text) != len(form) {
		return false
	}
	for i := range len(text) {
		c := text[i]
		hex := '0' <= c && c <= '9' || 'a' <= c && c <= 'f'
		if dash := form[i] == '-'; dash != (c == '-') || !dash && !hex {
			return false
		}
	}
	return true
}
