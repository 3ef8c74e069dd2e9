package server

import (
	"sync"
	"time"
)

// Decrypting a record takes about a microsecond, whatever it holds, and one without data ten times as long if it asks
// for an update of the key. A record is short if it has fewer than fairRecord bytes. More than freeRecords of those in
// a request, or of records without data in all, end a connection without an authenticated request. Those of a tenant
// wait, until all its connections together have sent about one per recordTime: libraries choose the records in which
// they send a body that is written in small pieces.
const (
	fairRecord  = 256
	freeRecords = 64
	longRecord  = 4 * fairRecord // what a longer one has beyond it makes up for no short ones
	recordTime  = 2 * time.Microsecond
	dataless    = 20               // records that one without data counts as
	leastDelay  = time.Millisecond // a shorter one is not worth a timer
	mostDelayed = time.Second
	// aheadBytes is how much is read beyond the end of a record, so that few short ones are read at once.
	aheadBytes = 1 << 10
)

// recordHeader is the length of what stands before each record: its type, a version, and its length (RFC 8446, 5.1).
const recordHeader = 5

// records counts the records in what a client sends. It is not safe for concurrent use.
type records struct {
	header int // bytes of the current header that have arrived
	length int // of the current record, as far as it is known
	left   int // bytes of the current record that have not arrived
}

// add returns how many records begin in a part, and by how many bytes they are shorter than fair ones.
func (r *records) add(part []byte) (begun, short int) {
	for len(part) > 0 {
		if r.left > 0 {
			n := min(r.left, len(part))
			r.left, part = r.left-n, part[n:]
			continue
		}
		r.length = (r.length<<8 | int(part[0])) & 0xffff
		part = part[1:]
		if r.header++; r.header == recordHeader {
			r.header, r.left = 0, r.length
			begun, short = begun+1, short+fairRecord-min(r.length, longRecord)
		}
	}
	return begun, short
}

// delays says how long connections of one tenant that send short records wait. It is safe for concurrent use.
type delays struct {
	mu    sync.Mutex
	until time.Time // when the records are paid for that were counted so far
}

// of counts records, and returns how long their connection waits.
func (d *delays) of(records int, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.until.Before(now) {
		d.until = now
	}
	d.until = d.until.Add(time.Duration(records) * recordTime)
	if most := now.Add(mostDelayed); d.until.After(most) {
		d.until = most
	}
	return d.until.Sub(now)
}
