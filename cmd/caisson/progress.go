package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/caisson-run/caisson/internal/terminal"
)

// patience is the time after which an operation is reported as slow.
const patience = 300 * time.Millisecond

// progress reports slow operations to a person at a terminal, one at a time.
type progress struct {
	mu sync.Mutex
	w  io.Writer
}

// newProgress returns nil if stderr is not a terminal or the command is quiet.
func (o *options) newProgress() *progress {
	file, ok := o.stderr.(*os.File)
	if !ok || o.quiet || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return &progress{w: file}
}

// during calls work and shows what if that takes long. A nil progress shows nothing.
func (p *progress) during(what string, work func()) {
	if p == nil || !p.mu.TryLock() {
		work()
		return
	}
	defer p.mu.Unlock()
	done, erased := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(erased)
		select {
		case <-done:
			return
		case <-time.After(patience):
		}
		line := what + " …"
		_, _ = fmt.Fprint(p.w, line)
		<-done
		_, _ = fmt.Fprint(p.w, "\r", strings.Repeat(" ", terminal.Cells(line)), "\r")
	}()
	work()
	close(done)
	<-erased
}

// defaultWidth is the width of a table that is not for a terminal, in columns.
const defaultWidth = 80

// widthOf returns the maximum width of a table that is written to w, in columns.
func widthOf(w io.Writer) int {
	if file, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return defaultWidth
}
