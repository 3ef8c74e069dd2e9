package executor

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/caisson-run/caisson/executor/internal/answers"
	"github.com/caisson-run/caisson/executor/internal/output"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// resultKey identifies everything that determines a read-only call's result. A registration identifies the
// tool's module, its manifest, its effective permissions and its mounts, which are all fixed
// when it is loaded; where these depend on the call, they do so through the context values.
type resultKey struct {
	tool    tool.Registration
	tenant  string
	session string // its key; empty: the same in all sessions of the tenant
	// rest is for context values, user, files, the caller's request, arguments, and the tools that it may call.
	rest [sha256.Size]byte
}

// answered is a cached result. It must not be modified.
type answered struct {
	source string // the call's id
	result tool.Result
}

// size is roughly the memory that a cached result takes.
func (a answered) size() int64 {
	return int64(a.result.Size()) + 128*int64(len(a.result.Content)) + 512
}

// writableFiles is the domain of the results of tools that see files, which several tenants may share.
const writableFiles = "files"

func tenantDomain(tenant string) string { return "tenant " + tenant }

// ask sets the question that the call asks the cache, if its result may be cached.
func (c *call) ask() error {
	b, behavior := c.batch, c.entry.Manifest.Behavior
	reuse := b.executor.options.Reuse
	if reuse.Scope == ReuseNone || !behavior.ReadOnly || behavior.Cache == manifests.CacheOff ||
		c.entry.Registration == (tool.Registration{}) {
		return nil
	}
	q := &answers.Question[resultKey]{
		Key:     resultKey{tool: c.entry.Registration, tenant: b.session.tenant},
		Domains: []string{tenantDomain(b.session.tenant)},
		TTL:     cmp.Or(behavior.Cache, reuse.TTL),
		Alone:   c.parent != nil, // two tools that wait for each other's calls would wait forever
	}
	if reuse.Scope != ReuseTenant {
		q.Key.session = b.session.key
	}
	text := appendValues(nil, b.session.context)
	text = appendText(text, b.session.user)
	text = appendFiles(text, b.files)
	text = b.requests[c.tool].append(text)
	text = c.invocation.Arguments.AppendCanonical(text)
	files, callees := len(c.entry.Manifest.Permissions.Files) > 0, []byte(nil)
	err := eachCallee(b.executor.resolver, c.entry, func(name string, called registry.Entry, _ bool) error {
		callees = appendText(callees, name)
		if called.Manifest == nil {
			return nil
		}
		callees = appendText(append(callees, called.Registration[:]...), called.Unavailable())
		callees = b.requests[called.Name].append(callees)
		files = files || len(called.Manifest.Permissions.Files) > 0
		if own := called.Manifest.Behavior.Cache; own > 0 {
			q.TTL = min(q.TTL, own)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if callees != nil {
		text = append(text, callees...)
		if b.allowed.began == nil {
			text = append(text, 0)
		} else {
			text = appendText(append(text, 1), slices.Sorted(maps.Keys(b.allowed.began))...)
		}
	}
	if files {
		q.Domains = append(q.Domains, writableFiles)
	}
	q.Key.rest = sha256.Sum256(text)
	c.question = q
	return nil
}

// appendValues appends context values unambiguously.
func appendValues(to []byte, values map[string]string) []byte {
	to = binary.AppendUvarint(to, uint64(len(values)))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		to = appendText(to, name, values[name])
	}
	return to
}

// appendText appends texts unambiguously: no two lists of texts have the same encoding.
func appendText(to []byte, texts ...string) []byte {
	for _, text := range texts {
		to = append(binary.AppendUvarint(to, uint64(len(text))), text...)
	}
	return to
}

func appendFiles(text []byte, files []tool.File) []byte {
	text = binary.AppendUvarint(text, uint64(len(files)))
	for _, f := range files {
		text = appendText(text, f.Name, f.Path, f.MIMEType)
		text = binary.AppendVarint(text, f.Bytes)
	}
	return text
}

// barrier invalidates the results that a call that is not read-only may make stale, now and when it has ended.
func (b *batch) barrier(c *call) (end func()) {
	domains := []string{tenantDomain(b.session.tenant)}
	if slices.ContainsFunc(c.entry.Manifest.Permissions.Files,
		func(p manifests.FilePermission) bool { return p.Access == manifests.AccessReadWrite }) {
		domains = append(domains, writableFiles)
	}
	return b.executor.answers.Barrier(domains...)
}

// isShareable reports whether the call's result also applies to its duplicates.
func (c *call) isShareable() bool {
	return !c.record.Skipped &&
		!slices.Contains([]tool.Kind{tool.Busy, tool.Cancelled, tool.Internal}, c.record.Result.Kind)
}

// copyResult completes the record with the result of a call of the same batch.
func (c *call) copyResult(source *call) {
	c.record.Skipped, c.record.Source = true, source.record.CallID
	c.record.Result, c.record.Cuts, c.whole = output.Clone(source.record.Result), slices.Clone(source.record.Cuts),
		source.whole
}
