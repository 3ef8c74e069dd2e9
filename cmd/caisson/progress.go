package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// patience is how long something takes before a person is told about it.
const patience = 300 * time.Millisecond

// progress tells a person at a terminal what takes long, one thing at a time.
type progress struct {
	mu sync.Mutex
	w  io.Writer
}

// newProgress returns nil where nobody watches.
func newProgress(env environment, o *options) *progress {
	file, ok := env.stderr.(*os.File)
	if !ok || o.quiet || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return &progress{w: file}
}

// during runs work, and says what is being done if it takes long. A nil progress says nothing.
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
		_, _ = fmt.Fprint(p.w, "\r", strings.Repeat(" ", utf8.RuneCountInString(line)), "\r")
	}()
	work()
	close(done)
	<-erased
}
