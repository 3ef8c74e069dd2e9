package executor

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/caisson-run/caisson/tool"
)

// schedule runs calls: read-only neighbours together, any other alone. A call that was
// refused runs nothing, so it separates nothing.
func (b *batch) schedule(ctx context.Context, calls []*call) {
	for len(calls) > 0 {
		n := 0
		for n < len(calls) && (calls[n].refused || calls[n].readOnly) {
			n++
		}
		n = max(n, 1)
		b.together(ctx, calls[:n])
		calls = calls[n:]
	}
}

// together runs calls at the same time, as many as may, started in their order, and
// returns when all have ended.
func (b *batch) together(ctx context.Context, calls []*call) {
	if len(calls) == 1 {
		b.run(ctx, calls[0])
		calls[0].whole = tool.Result{}
		return
	}
	questions := group(calls)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(b.parallel, len(questions)) {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(questions) {
					return
				}
				b.runSame(ctx, questions[i])
			}
		})
	}
	workers.Wait()
}

// group puts calls that ask the same together, at the place of the first of them.
func group(calls []*call) [][]*call {
	groups := make([][]*call, 0, len(calls))
	first := make(map[key]int, len(calls))
	for i, c := range calls {
		if c.question != nil {
			if at, ok := first[c.question.Key]; ok {
				groups[at] = append(groups[at], c)
				continue
			}
			first[c.question.Key] = len(groups)
		}
		groups = append(groups, calls[i:i+1:i+1])
	}
	return groups
}

// runSame runs the first of calls that ask the same. The others have what it came to, unless
// that says nothing of what they would.
func (b *batch) runSame(ctx context.Context, calls []*call) {
	var source *call
	for _, c := range calls {
		c.source = source
		b.run(ctx, c)
		if source == nil && c.tells() {
			source = c
			continue
		}
		c.whole = tool.Result{}
	}
	if source != nil {
		source.whole = tool.Result{}
	}
}
