package answer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caisson-run/caisson/hostfuncs/secrets"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
)

// maskGrace is the extra time for masking the log after the call's deadline. The log of a late call is the most useful
// one. The grace is far shorter than how late a call may be.
const maskGrace = 20 * time.Millisecond

// unmaskedLog replaces a log that could not be masked in time.
const unmaskedLog = "[log omitted: there was no time to mask secrets in it]\n"

// mask masks secrets in everything that the guest can influence. The guest cannot read a secret, but a server may have
// sent it one in a form that response masking missed. mask is given how the guest ended and returns how the call ends.
// Text that cannot be masked before the deadline is not shown; if that is the output, the call is late.
func (a *Answer) mask(ctx context.Context, ended error) error {
	masked := a.Secrets
	a.log = a.maskedLog(ctx)
	if masked.Longest() == 0 {
		return ended
	}
	var err error
	if !mayBeRead(ended) {
		a.Stdout.Bytes = nil // it is not shown to anyone
	} else if a.Stdout.Bytes, err = masked.MaskFirst(ctx, a.Stdout.Bytes, len(a.Stdout.Bytes)); err != nil {
		ended = err
	}
	if a.Plugin != nil {
		if a.Plugin.Error, err = masked.MaskFirst(ctx, a.Plugin.Error,
			min(len(a.Plugin.Error), int(a.Limits.Output))); err != nil {
			ended = err
		}
	}
	text := a.maskText
	for i := range a.Denials {
		d := &a.Denials[i]
		d.Value, d.Rule = text(d.Value), text(d.Rule)
		for _, rule := range []*json.RawMessage{&d.Allow.Manifest, &d.Allow.Grant} {
			if text(string(*rule)) != string(*rule) {
				*rule = nil // a masked rule would allow something else
			}
		}
	}
	for i := range a.HostCalls {
		a.HostCalls[i].Target = text(a.HostCalls[i].Target)
	}
	return ended
}

// maskText returns a text without the values of secrets.
func (a *Answer) maskText(text string) string { return string(a.Secrets.Mask([]byte(text))) }

// guestLog is the guest's standard error with secrets masked: all of it, or its beginning and its end.
type guestLog struct {
	text    []byte
	end     []byte
	missing int64 // how many bytes are missing between the two
	omitted bool  // there was no time to mask it
}

// newLog returns the output that collects a guest's log. It has room for the limit and for the end,
// and around the gap for as much as the longest secret, so that none is split where it cannot be seen.
func (a *Answer) newLog(longest int) wasi.Output {
	return wasi.Output{Limit: int64(a.Limits.Stderr) + int64(longest), Tail: maxWords + longest}
}

func (a *Answer) maskedLog(ctx context.Context) guestLog {
	log, err := a.maskLog(ctx)
	if err == nil {
		return log
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maskGrace)
	defer cancel()
	if log, err = a.maskLog(ctx); err != nil {
		return guestLog{omitted: true}
	}
	return log
}

// maskLog masks the log, and cuts it if it is longer than its limit and [maxWords] together.
func (a *Answer) maskLog(ctx context.Context) (guestLog, error) {
	masked, limit := a.Secrets, int(a.Limits.Stderr)
	begin := a.Stderr.Bytes
	end, missing := a.Stderr.End()
	total := int64(len(begin)) + missing + int64(len(end))
	if missing == 0 {
		if len(end) > 0 {
			begin = slices.Concat(begin, end)
		}
		if len(begin) <= limit+maxWords {
			text, err := masked.MaskFirst(ctx, begin, len(begin))
			return guestLog{text: text}, err
		}
		end = begin[max(0, len(begin)-maxWords-masked.Longest()):]
	}
	text, err := masked.MaskFirst(ctx, begin, limit)
	if err != nil {
		return guestLog{}, err
	}
	end, err = maskLast(ctx, masked, end, maxWords)
	return guestLog{text: text, end: end, missing: total - int64(limit) - maxWords}, err
}

// maskLast returns the masked form of the last n bytes of a text. A secret that the cut splits is dropped whole, since
// its beginning is before these bytes.
func maskLast(ctx context.Context, masked *secrets.Set, text []byte, n int) ([]byte, error) {
	before, err := masked.MaskFirst(ctx, text, len(text)-n)
	if err != nil {
		return nil, err
	}
	whole, err := masked.MaskFirst(ctx, text, len(text))
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(whole, before) { // masking made another secret at the cut
		return nil, nil
	}
	return whole[len(before):], nil
}

// maxWords is the number of last bytes of a tool's log that are kept beyond its limit, and that are added to a failure
// for which the tool gave no reason.
const maxWords = 2 << 10

// lastWords returns the end of the tool's log: at most limit bytes.
func (a *Answer) lastWords(limit int) string {
	if a.log.missing > 0 {
		return lastOf(string(a.log.end), limit, true)
	}
	return lastOf(string(a.log.text), limit, false)
}

// lastOf returns the end of a text, from the beginning of a line if there is one. A text that was cut
// is itself the end of a longer one.
func lastOf(text string, limit int, cut bool) string {
	text = strings.TrimRight(text, " \t\r\n")
	if len(text) > limit {
		text, cut = text[len(text)-limit:], true
	}
	if cut {
		if _, lines, found := strings.Cut(text, "\n"); found {
			text = lines
		}
	}
	if text = strings.TrimSpace(text); cut && text != "" {
		text = "… " + text
	}
	return valid(text)
}

// maxTrace is the maximum length of a logged trace in bytes. It has some thirty frames, each with the types of its
// function, which may be thousands.
const maxTrace = 4 << 10

// shown returns the log as records have it, with the host's notes.
func (a *Answer) shown() string {
	if a.log.omitted {
		return unmaskedLog
	}
	own := func(text []byte) string {
		if len(text) == 0 { // of most calls
			return ""
		}
		return ownWords.Replace(strings.ToValidUTF8(string(text), "\uFFFD"))
	}
	log := own(a.log.text)
	if a.log.missing > 0 {
		log += fmt.Sprintf("\n%s%s: %d bytes left out]\n", cutMark, a.Limits.Stderr, a.log.missing) + own(a.log.end)
	}
	if left := a.left(); left != "" {
		if log != "" {
			log += "\n"
		}
		log += leftOutMark + left + "]\n"
	}
	if a.trace != "" {
		log += "\n" + trapMark + "\n" + strings.ToValidUTF8(a.trace[:min(len(a.trace), maxTrace)], "\uFFFD")
		if len(a.trace) > maxTrace {
			log += "…"
		}
	}
	return log
}

// left describes the parts of the output that the result does not have. It is empty if there are none.
func (a *Answer) left() string {
	switch {
	case a.illFormed == 0:
		return a.leftOut
	case a.leftOut == "":
		return fmt.Sprintf("bytes that are not UTF-8 (%d), with U+FFFD for each run of them", a.illFormed)
	}
	return fmt.Sprintf("%s; bytes that are not UTF-8 (%d), with U+FFFD for each run of them", a.leftOut, a.illFormed)
}

// The markers of text that the host adds to a guest's log.
const (
	cutMark     = "[cut after "
	trapMark    = "[trap at]"
	leftOutMark = "[left out of the result: "
)

// ownWords escapes the host's markers in a guest's log, so that a guest cannot forge them.
var ownWords = strings.NewReplacer(cutMark, `\`+cutMark, trapMark, `\`+trapMark, leftOutMark, `\`+leftOutMark)
