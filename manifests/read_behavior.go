package manifests

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// The bounds of limits. Memory is what 32-bit linear memory can hold, less one page,
// so that its size in bytes fits 32 bits.
const (
	leastMemory  = 64 << 10
	mostMemory   = 4<<30 - 64<<10
	leastTimeout = time.Millisecond
	mostTimeout  = 24 * time.Hour
	mostOutput   = 64 << 20
	mostStderr   = 16 << 20
	mostHTTP     = 10_000
	mostTransfer = 1 << 40
	mostFiles    = 4096
	mostDisk     = 1 << 50
	leastCache   = time.Second
	mostCache    = 30 * 24 * time.Hour
)

func (r *reader) limits(n *node, path string, l *Limits) {
	r.object(n, path,
		field{"memory", "", func(n *node, path string) { l.Memory = r.bytes(n, path, leastMemory, mostMemory) }},
		field{"timeout", "", func(n *node, path string) { l.Timeout = r.duration(n, path, leastTimeout, mostTimeout) }},
		field{"fuel", "", func(n *node, path string) { l.Fuel = r.integer(n, path, 1, math.MaxInt64) }},
		field{"output", "", func(n *node, path string) { l.Output = r.bytes(n, path, 1, mostOutput) }},
		field{"stderr", "", func(n *node, path string) { l.Stderr = r.bytes(n, path, 1, mostStderr) }},
		field{"http_calls", "", func(n *node, path string) { l.HTTPCalls = int(r.integer(n, path, 1, mostHTTP)) }},
		field{"http_bytes", "", func(n *node, path string) { l.HTTPBytes = r.bytes(n, path, 1, mostTransfer) }},
		field{"open_files", "", func(n *node, path string) { l.OpenFiles = int(r.integer(n, path, 1, mostFiles)) }},
		field{"disk_bytes", "", func(n *node, path string) { l.DiskBytes = r.bytes(n, path, 1, mostDisk) }},
	)
}

func (r *reader) behavior(n *node, path string, b *Behavior) {
	flag := func(key string, to *bool) field {
		return field{key, "", func(n *node, path string) { *to = r.boolean(n, path) }}
	}
	r.object(n, path,
		flag("read_only", &b.ReadOnly),
		flag("idempotent", &b.Idempotent),
		flag("destructive", &b.Destructive),
		field{"cache", "", func(n *node, path string) { b.Cache = r.cache(n, path) }},
		flag("final", &b.Final),
		flag("hidden", &b.Hidden),
		field{"snapshot", "", func(n *node, path string) {
			b.Snapshot = Snapshot(r.choice(n, path, string(SnapshotAuto), string(SnapshotOff), string(SnapshotStart)))
		}},
	)
}

// cache reads how long answers are kept, or off.
func (r *reader) cache(n *node, path string) time.Duration {
	if n.kind == textNode && n.text == cacheOff {
		return CacheOff
	}
	if n.kind == textNode && strings.EqualFold(n.text, cacheOff) {
		r.add(n.at, path, InvalidValue, fmt.Sprintf("%q is not a length of time", clip(n.text)), "write off in lower case")
		return 0
	}
	return r.duration(n, path, leastCache, mostCache)
}

const cacheOff = "off"
