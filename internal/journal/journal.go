// Package journal keeps the host calls of one guest to one kind of host function, and the receipts
// of those that were denied. A record lists both. A journal is bounded, whatever the guest does.
//
//	entry, _ := j.Begin(tool.HostCall{Kind: "tools.call", Target: name, Began: now})
//	j.Change(entry, func(call *tool.HostCall) { call.Status = "ok" })
//
// The package is for the runtime. Its API carries no compatibility promise.
package journal

import (
	"slices"
	"sync"
	"time"

	"github.com/caisson-run/caisson/tool"
)

// MaxDenials is the number of receipts that a [Journal] keeps.
const MaxDenials = 32

const few = 8 // initial capacity of the list of host calls

// Journal keeps host calls and receipts. The zero value is an empty journal. It is safe for
// concurrent use, and must not be copied after first use.
type Journal struct {
	mu       sync.Mutex
	count    int64
	calls    []tool.HostCall
	receipts []receipt
}

// receipt is a denial. The suggested rules that would allow it are computed when Denials is called, since a guest can
// be denied many times a millisecond.
type receipt struct {
	denial tool.Denial
	allow  func() tool.Allow // nil: denial.Allow is used
}

// Entry identifies a host call in a journal. The zero value is a call that is not listed.
type Entry struct{ place int } // in the list, counted from 1

// Begin counts a host call, and lists it if it is among the first [tool.MaxHostCalls]. It returns
// the number of host calls including this one.
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

// Change calls change with a listed host call, to modify it. It does nothing if the host call is
// not listed. The function must not use the journal.
func (j *Journal) Change(entry Entry, change func(call *tool.HostCall)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if entry.place > 0 {
		change(&j.calls[entry.place-1])
	}
}

// Undo takes back the newest host call, whose entry must not be used afterwards.
func (j *Journal) Undo(newest Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.count--
	if newest.place > 0 {
		j.calls = j.calls[:newest.place-1]
	}
}

// Deny keeps a receipt. It replaces a receipt with the same value and rule, and the newest receipt
// is last, since it is the likeliest cause of what the guest does next. When the journal is full,
// the new receipt replaces the last one, so that a flood of denials cannot hide the first ones. It replaces a note
// while more than half of the receipts are notes, so that those cannot hide what follows them.
// If allow is not nil, it returns what would allow the use, and Denials calls it at any time.
func (j *Journal) Deny(denial tool.Denial, allow func() tool.Allow) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.receipts = slices.DeleteFunc(j.receipts,
		func(r receipt) bool { return r.denial.Value == denial.Value && r.denial.Rule == denial.Rule })
	if len(j.receipts) == MaxDenials {
		last, notes := MaxDenials-1, 0
		for notes < MaxDenials && j.receipts[notes].denial.Note {
			notes++ // they are the first
		}
		if notes > MaxDenials/2 {
			last = notes - 1
		}
		j.receipts = slices.Delete(j.receipts, last, last+1)
	}
	j.receipts = append(j.receipts, receipt{denial, allow})
}

// MakeNotes turns the receipts so far into notes; see [tool.Denial]. A request that is denied again
// later leaves a receipt that is not a note.
func (j *Journal) MakeNotes() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.receipts {
		j.receipts[i].denial.Note = true
	}
}

// Denials returns the receipts. The caller may keep them.
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

// Continue makes the journal an equal of another one, as if each of its calls had taken no time just now. The other one
// must not change afterwards.
func (j *Journal) Continue(from *Journal, now func() time.Time) {
	if from.count == 0 && len(from.receipts) == 0 {
		return
	}
	at := now()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.count = from.count
	j.calls, j.receipts = slices.Clone(from.calls), slices.Clone(from.receipts)
	for i := range j.calls {
		j.calls[i].Began, j.calls[i].Duration = at, 0
	}
}

// Reset empties the journal.
func (j *Journal) Reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.count, j.calls, j.receipts = 0, nil, nil
}

// HostCalls returns a copy of the listed host calls, in the order in which they began.
func (j *Journal) HostCalls() []tool.HostCall {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.calls)
}

// Count returns the number of host calls, listed or not.
func (j *Journal) Count() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.count
}
