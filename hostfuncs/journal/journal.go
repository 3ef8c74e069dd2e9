// Package journal keeps what one guest asked of one kind of host function, and what it was refused:
// the host calls and the receipts of a record. It is bounded, whatever the guest does.
//
//	entry, _ := j.Begin(tool.HostCall{Kind: "tools.call", Target: name, Began: now})
//	j.Change(entry, func(call *tool.HostCall) { call.Status = "ok" })
//
// It is for the runtime: its API promises no compatibility.
package journal

import (
	"slices"
	"sync"

	"github.com/caisson-run/caisson/tool"
)

// MaxDenials is how many receipts are kept.
const MaxDenials = 32

const few = 8 // host calls that a list has room for at first

// Journal is empty as the zero value, and safe for concurrent use. It must not be copied after its
// first use.
type Journal struct {
	mu       sync.Mutex
	count    int64
	calls    []tool.HostCall
	receipts []receipt
}

// receipt is a refusal. What would allow it is put into words once it is asked for: guests can be
// refused many times a millisecond.
type receipt struct {
	denial tool.Denial
	allow  func() tool.Allow // nil: the denial has it
}

// Entry names a host call of a journal. The zero value is one beyond what a record lists.
type Entry struct{ place int } // in the list, from 1 on

// Begin counts a host call, and lists it if it is among the first [tool.MaxHostCalls]. It returns how
// many there are with it.
func (j *Journal) Begin(call tool.HostCall) (Entry, int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.count++
	if len(j.calls) == tool.MaxHostCalls {
		return Entry{}, j.count
	}
	if j.calls == nil {
		j.calls = make([]tool.HostCall, 0, few)
	}
	j.calls = append(j.calls, call)
	return Entry{len(j.calls)}, j.count
}

// Change changes what is listed of a host call. The function must not use the journal.
func (j *Journal) Change(entry Entry, change func(call *tool.HostCall)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if entry.place > 0 {
		change(&j.calls[entry.place-1])
	}
}

// Deny keeps a receipt. Of those with one value and one rule it keeps the last, and the most recent
// stands last: it is the likeliest cause of what the guest does next. When there are too many, the
// last gives way and the first stay, so that a flood of refusals cannot hide how it began. If allow
// is not nil, it says what would allow the use; it is called by Denials, at any time.
func (j *Journal) Deny(denial tool.Denial, allow func() tool.Allow) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.receipts = slices.DeleteFunc(j.receipts, func(r receipt) bool { return r.denial.Value == denial.Value && r.denial.Rule == denial.Rule })
	if len(j.receipts) == MaxDenials {
		j.receipts = j.receipts[:MaxDenials-1]
	}
	j.receipts = append(j.receipts, receipt{denial, allow})
}

// Denials returns the receipts, which are the caller's to keep.
func (j *Journal) Denials() []tool.Denial {
	j.mu.Lock()
	defer j.mu.Unlock()
	var denials []tool.Denial
	for _, r := range j.receipts {
		if r.allow != nil {
			r.denial.Allow = r.allow()
		}
		denials = append(denials, r.denial)
	}
	return denials
}

// HostCalls returns the host calls that are listed, in the order in which they began, as they are now.
func (j *Journal) HostCalls() []tool.HostCall {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.calls)
}

// Count returns how many host calls there were, listed or not.
func (j *Journal) Count() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.count
}
