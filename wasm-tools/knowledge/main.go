// Command knowledge implements the tools that find and read knowledge in a project's documents. Its
// command-line argument selects the tool.
//
// A knowledge base is a folder of the project, and the id of a document is its path. The host confines
// paths: for this program, only the directory /project exists.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
	"github.com/caisson-run/caisson/wasm-tools/knowledge/internal/documents"
)

// arguments is the union of the tools' arguments.
type arguments struct {
	ProjectID        string   `json:"project_id"` // which the host has resolved already
	KnowledgeBaseIDs []string `json:"knowledge_base_ids"`

	Patterns      []string `json:"patterns"`
	Regex         bool     `json:"regex"`
	CaseSensitive bool     `json:"case_sensitive"`
	ContextLines  int      `json:"context_lines"`
	MaxResults    int      `json:"max_results"`
	From          string   `json:"from"`

	Queries []string `json:"queries"`
	Rebuild bool     `json:"rebuild"`
	Query   string   `json:"query"`
	Depth   int      `json:"depth"`

	KnowledgeID  string   `json:"knowledge_id"`
	KnowledgeIDs []string `json:"knowledge_ids"`
	Limit        int      `json:"limit"`
	Offset       int      `json:"offset"`
}

// tools implements the tools.
type tools struct {
	project documents.Project
	now     func() time.Time
	// deadline is the time at which a tool returns its results so far.
	deadline time.Time
}

// budget is the maximum time that a call searches. The rest of its ten seconds is for the answer, and for a busy
// machine.
const budget = 8500 * time.Millisecond

// memory is the soft limit for Go's garbage collector, in bytes. A tool has 128 MiB.
const memory = 96 << 20

var operations = map[string]func(*tools, arguments) (call.Result, error){
	"grep": (*tools).grep, "list": (*tools).list, "info": (*tools).info, "search": (*tools).search,
	"index": (*tools).index, "graph": (*tools).graph,
}

func main() { call.Main(run) }

func run(a arguments) (call.Result, error) {
	if len(os.Args) != 2 || operations[os.Args[1]] == nil {
		return call.Result{}, errors.New("want one argument: grep, list, info, search, index or graph")
	}
	// Little is kept, so that collecting garbage early would be most of the work of allocating it.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(memory)
	t := &tools{project: documents.Project{Root: "/project"}, now: time.Now, deadline: time.Now().Add(budget)}
	return t.do(os.Args[1], a)
}

func (t *tools) do(operation string, a arguments) (call.Result, error) {
	done, err := operations[operation](t, a)
	done.Success = err == nil
	return done, err
}

// isLate reports whether it is time to return.
func (t *tools) isLate() bool { return !t.now().Before(t.deadline) }

// skipped has the files and folders that a call could not read.
type skipped struct {
	Binary   int                 `json:"binary_files"`
	Problems []documents.Problem `json:"problems,omitempty"`
	more     int
}

// maxProblems is the maximum number of problems in a result.
const maxProblems = 20

func (s *skipped) add(problems ...documents.Problem) {
	room := max(0, maxProblems-len(s.Problems))
	s.Problems = append(s.Problems, problems[:min(room, len(problems))]...)
	s.more += max(0, len(problems)-room)
}

// failed notes why a document was not read to its end.
func (s *skipped) failed(d documents.Document, err error) {
	if errors.Is(err, documents.ErrBinary) {
		s.Binary++
		return
	}
	s.add(documents.Problem{Path: d.ID, Reason: err.Error()})
}

// notes describes the skipped files and folders in text.
func (s *skipped) notes() (text string) {
	if s.Binary > 0 {
		text += fmt.Sprintf("[%s left out]\n", count(s.Binary, "file that is not text was", "files that are not text were"))
	}
	for _, p := range s.Problems {
		text += fmt.Sprintf("[%s: %s]\n", label(p.Path), p.Reason)
	}
	if s.more > 0 {
		text += fmt.Sprintf("[and %s]\n", count(s.more, "more problem", "more problems"))
	}
	return text
}

// label returns a path, or the id of a chunk, as texts show it. A file's name may hold line breaks and invisible
// characters, with which it could pose as other results.
func label(id string) string {
	if !utf8.ValidString(id) || strings.ContainsFunc(id, func(r rune) bool { return !plain.Visible(r) }) {
		return strconv.Quote(id)
	}
	return id
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
