package responses

import "strings"

// The API's prefixes of the ids of items.
const (
	prefixFunction = "fc_"
	prefixCustom   = "ctc_"
	prefixShell    = "lsh_"
	prefixWeb      = "ws_"
	prefixFiles    = "fs_"
	prefixImage    = "ig_"
	prefixServer   = "mcp_"
	prefixRequest  = "mcpr_"
	prefixMessage  = "msg_"
)

// requestID returns the id of a request for approval. It says what the approval is for, so that
// the answer, which says no more than this id, does too. Call ids are UUIDs, without underscores.
func requestID(callID, fingerprint string) string {
	return prefixRequest + callID + "_" + fingerprint
}

// requested returns the call and the fingerprint that the id of a request for approval says. Of an
// id that requestID did not make, all is the call's id.
func requested(id string) (callID, fingerprint string) {
	inside, ours := strings.CutPrefix(id, prefixRequest)
	callID, fingerprint, both := strings.Cut(inside, "_")
	if !ours || !both || callID == "" || fingerprint == "" {
		return id, ""
	}
	return callID, fingerprint
}
