package ledger

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-run/caisson/internal/folder"
	"github.com/caisson-run/caisson/tool"
)

// MaxEntryBytes bounds the JSON of one entry.
const MaxEntryBytes = 64 << 20

// Entry is one call that has ended.
type Entry struct {
	Tenant  string `json:"tenant"` // on whose behalf the call was made
	User    string `json:"user"`   // the person for whom the tenant's agent works, if that is known
	Session string `json:"session"`
	Batch   string `json:"batch"`
	// Time is when the call ended.
	Time time.Time `json:"time"`
	// Source is the folder or manifest that the tool was loaded from; empty if there was no tool.
	Source   string      `json:"source"`
	Manifest string      `json:"manifest"` // the tool's manifest; empty if there was no tool
	Record   tool.Record `json:"-"`
	// Cause is the reason for the host's failure; empty if the host did not fail. The record omits it, since other people
	// read the record.
	Cause string `json:"cause,omitempty"`
	// Wire is the record's JSON, byte for byte as kept. Decoding it rounds times. It is set when an entry is found, and
	// kept in place of Record if it is set before.
	Wire json.RawMessage `json:"record"`
	// Intended says that [Ledger.Intend] was called before.
	Intended bool `json:"-"`
	// Whole is the result before parts of it were cut, or nil if nothing was cut.
	Whole *tool.Result `json:"whole,omitempty"`
	// Inputs are what the host answered the call, if that was recorded. Only [Ledger.Find] returns them.
	Inputs json.RawMessage `json:"inputs,omitempty"`
}

// Result returns the whole result of the call.
func (e Entry) Result() tool.Result {
	if e.Whole != nil {
		return *e.Whole
	}
	return e.Record.Result
}

// encode returns the JSON of an entry. If a text of the call is longer than arguments may be, only its start is kept.
func (e Entry) encode() ([]byte, error) {
	if e.Wire != nil {
		return json.Marshal(e)
	}
	call := &e.Record.Call
	for _, text := range []*string{&call.ID, &call.Type, &call.Function.Name, &call.Function.Arguments, &call.Signature} {
		if len(*text) > tool.MaxArgumentsBytes {
			*text = strings.ToValidUTF8((*text)[:tool.MaxArgumentsBytes], "") + "…"
		}
	}
	content, err := json.Marshal(struct {
		Entry
		Record tool.Record `json:"record"` // in place of Wire, for which it would be encoded twice
	}{e, e.Record})
	if err != nil {
		return nil, err
	}
	if len(content) > MaxEntryBytes {
		return nil, fmt.Errorf("%s: %w: it has %d bytes", e.Record.CallID, ErrTooLarge, len(content))
	}
	return content, nil
}

// decode returns the entry with this JSON.
func decode(content []byte) (e Entry, err error) {
	if err := errors.Join(json.Unmarshal(content, &e), json.Unmarshal(e.Wire, &e.Record)); err != nil {
		return e, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return e, nil
}

// Outcome is "success", or the kind of a failure.
func outcome(r tool.Record) string {
	if r.Result.Success {
		return "success"
	}
	return string(r.Result.Kind)
}

// callID returns the 16 bytes of a call's id.
func callID(id string) ([]byte, error) {
	if !folder.IsID(id) {
		return nil, fmt.Errorf("%s: %w", strconv.Quote(id), ErrID)
	}
	return hex.DecodeString(strings.ReplaceAll(id, "-", ""))
}

// hyphenated returns the id with these 16 bytes (RFC 9562, section 4).
func hyphenated(raw []byte) string {
	digits := hex.EncodeToString(raw)
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
}

// idRange returns the first and the last id that start with a text.
func idRange(prefix string) (first, last []byte, err error) {
	if !folder.IsPrefix(prefix) {
		return nil, nil, fmt.Errorf("%s: %w", strconv.Quote(prefix), ErrID)
	}
	digits := strings.ReplaceAll(prefix, "-", "")
	first, err = hex.DecodeString(digits + strings.Repeat("0", 32-len(digits)))
	if err == nil {
		last, err = hex.DecodeString(digits + strings.Repeat("f", 32-len(digits)))
	}
	return first, last, err
}
