package pause

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/caisson-run/caisson/tool"
)

// check returns an error if this cannot be a paused batch.
func (w *Batch) check() error {
	switch {
	case w.Version != Version:
		return fmt.Errorf("it is of the version %q, and %q is what can be resumed here; run the batch again",
			tool.Shown(w.Version, 64), Version)
	case !isID(w.ID):
		return errors.New("the batch id is invalid")
	case w.Revision < 1 || w.Revision > maxRevision:
		return fmt.Errorf("revision %d", w.Revision)
	case !isDigest(w.Session):
		return errors.New("the session is not a digest")
	case w.Expires.IsZero():
		return errors.New("it does not say when it expires")
	}
	ended, waiting := 0, 0
	seen := make(map[string]bool, len(w.Calls))
	for i := range w.Calls {
		c := &w.Calls[i] // already checked when it was read
		if seen[c.CallID] {
			return fmt.Errorf("call %d: its call_id is another's", i)
		}
		seen[c.CallID] = true
		if c.Ended != nil {
			ended++
		}
		if c.Waits != nil {
			waiting++
		}
	}
	if waiting == 0 {
		return errors.New("no call waits for anything")
	}
	return checkTotals(&w.Totals, ended)
}

// maxRevision is far above how often a batch pauses.
const maxRevision = 1 << 30

// maxTotal is far above any total, and small enough that additions do not overflow.
const maxTotal = 1 << 60

func checkTotals(t *tool.Totals, ended int) error {
	all := []int64{int64(t.Calls), int64(t.Nested), int64(t.Succeeded), int64(t.Failed), int64(t.Skipped), int64(t.Cached),
		t.Fuel, t.MemoryBytes, int64(t.Wall), t.HostCalls, t.OutputBytes}
	switch {
	case slices.Min(all) < 0:
		return errors.New("one of its totals is negative")
	case slices.Max(all) > maxTotal:
		return errors.New("one of its totals is too large")
	case t.Calls-t.Nested != ended:
		return fmt.Errorf("totals of %d calls; %d have ended", t.Calls-t.Nested, ended)
	}
	return nil
}

func (c *Call) check() error {
	switch {
	case !isID(c.CallID):
		return errors.New("its call_id is invalid")
	case c.Ended != nil && c.Waits != nil:
		return errors.New("it has ended and waits")
	case c.Ended != nil:
		return c.Ended.check()
	case c.Waits != nil:
		return c.Waits.check()
	}
	return nil
}

func (e *storedRecord) check() error {
	switch kind := e.Result.Kind; {
	case e.Result.Success != (kind == ""):
		return fmt.Errorf("success is %t and the kind is %q", e.Result.Success, tool.Shown(string(kind), 32))
	case kind != "" && !slices.Contains(tool.Kinds(), kind):
		return fmt.Errorf("there is no kind %q", tool.Shown(string(kind), 32))
	case e.Final && !e.Result.Success:
		return errors.New("a failure is no final answer")
	case e.Source != "" && !isID(e.Source):
		return errors.New("its source is not a call_id")
	}
	return nil
}

func (a *storedAction) check() error {
	switch {
	case a.Tool == "":
		return errors.New("it waits without a tool")
	case len(a.Arguments) == 0 || a.Arguments[0] != '{':
		return errors.New("it waits without arguments")
	case a.Type == tool.NeedsOutput && (a.Fingerprint != "" || len(a.Decisions)+len(a.Callees) > 0):
		return errors.New("it waits for an output, which has no fingerprint, no permissions and no callees")
	case a.Type == tool.NeedsApproval && !isDigest(a.Fingerprint):
		return errors.New("its fingerprint is invalid")
	case a.Type != tool.NeedsOutput && a.Type != tool.NeedsApproval:
		return fmt.Errorf("it waits for %q", tool.Shown(string(a.Type), 32))
	}
	return nil
}

// isID reports whether a text is an id in canonical form.
func isID(text string) bool {
	id, err := uuid.Parse(text)
	return err == nil && id.String() == text
}

// isDigest reports whether a text is 64 lower-case hex digits.
func isDigest(text string) bool {
	digest, err := hex.DecodeString(text)
	return err == nil && len(digest) == 32 && hex.EncodeToString(digest) == text
}
