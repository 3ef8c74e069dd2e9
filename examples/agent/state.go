package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

const (
	stateSchema = "caisson-agent/v1"
	maxState    = 64 << 20 // bytes
)

// state is a conversation that waits for a person. It holds no key, and no permission but what the
// person has approved for the session.
type state struct {
	Schema       string          `json:"schema"`
	Conversation conversation    `json:"conversation"`
	Batch        executor.State  `json:"batch"`
	Outputs      []tool.Answer   `json:"outputs"` // what was answered already
	Approvals    []tool.Approval `json:"approvals"`
}

// errWritable is for a file that others can write: it holds what the person has approved, so that
// whoever writes it approves.
var errWritable = errors.New("others can write it, and what it says is approved is done")

// suspended is a conversation that was taken up from its file. While it is, the file has another
// name, so that no second process can take it up too.
type suspended struct {
	state
	file, taken string
	settled     bool // it went on, or was kept anew
}

// takeUp takes a conversation from its file. Release it.
func takeUp(file string) (*suspended, error) {
	taken, err := rename(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, failed(exitUsage, fmt.Sprintf("--resume %s: there is no such file; another process may have gone on with it", file),
			fmt.Sprintf("a process that was killed meanwhile has left it as %s.*.taken: go on with --resume and that name", file))
	}
	if err != nil {
		return nil, err
	}
	s := &suspended{file: file, taken: taken}
	if err := s.read(); err != nil {
		hint := "name a file that --state has made"
		if errors.Is(err, errWritable) {
			hint = "see what it says; if it is as you have left it: chmod go-w " + file
		}
		return nil, s.release(&failure{exitUsage, fmt.Sprintf("--resume %s: %v", file, err), []string{hint}, err})
	}
	return s, nil
}

// rename gives a file a name that no other process gives it, and returns it.
func rename(file string) (taken string, err error) {
	reserved, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*.taken")
	if err != nil {
		return "", err
	}
	taken = reserved.Name()
	if err = reserved.Close(); err == nil {
		err = os.Rename(file, taken)
	}
	if err != nil {
		_ = os.Remove(taken)
	}
	return taken, err
}

func (s *suspended) read() error {
	file, err := os.Open(s.taken)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 { // there it does not say who can
		return errWritable
	}
	document, err := io.ReadAll(io.LimitReader(file, maxState+1))
	if err != nil {
		return err
	}
	if len(document) > maxState {
		return fmt.Errorf("it has more than %d bytes", maxState)
	}
	s.state, err = parseState(document)
	return err
}

// parseState reads what suspend writes.
func parseState(document []byte) (state, error) {
	var s state
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return state{}, fmt.Errorf("it cannot be read: %w", err)
	}
	if decoder.More() || s.Schema != stateSchema || len(s.Conversation.Messages) == 0 || len(s.Batch.Pending()) == 0 || s.Conversation.Rounds < 0 || s.Conversation.Tokens < 0 {
		return state{}, errors.New("it is no conversation that waits")
	}
	return s, nil
}

// release lets go of the conversation: it goes back into its file if nothing came of it, and stays
// where it is if there is a file of that name by then. It returns the error that it was given, or
// else its own.
func (s *suspended) release(err error) error {
	if s.settled {
		return joined(err, os.Remove(s.taken))
	}
	if failure := move(s.taken, s.file); failure != nil {
		return hinted(joined(err, failure), "the conversation is still there: go on with --resume "+s.taken)
	}
	return err
}

// suspend keeps the conversation as it waits, if there is a file for it, and returns what the
// program ends with.
func (a *agent) suspend(batch executor.State, outputs []tool.Answer, cause error) error {
	file := a.options.state
	if file == "" {
		return cause
	}
	kept := file
	document, err := json.Marshal(state{stateSchema, a.talk, batch, append([]tool.Answer{}, outputs...), append([]tool.Approval{}, a.session.Approvals()...)})
	if err == nil {
		kept, err = keep(file, document)
	}
	if err != nil {
		return errors.Join(cause, fmt.Errorf("the conversation cannot be kept: %w", err))
	}
	if a.from != nil {
		a.from.settled = true
	}
	hint := "go on with --resume " + kept
	if errors.Is(cause, errLater) {
		return failed(exitWaiting, "the conversation waits in "+kept, hint)
	}
	known := &failure{exitFailed, cause.Error(), []string{hint}, cause}
	if errors.Is(cause, context.Canceled) {
		known.code, known.text = exitInterrupted, "interrupted; the conversation waits in "+kept
	}
	return known
}

// keep writes a file that is ours alone, whole or not at all, and returns its name: the one that it
// is given, or another beside it if there is a file of that name by then.
func keep(name string, content []byte) (kept string, err error) {
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.kept") // with mode 0600
	if err != nil {
		return "", err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err = joined(err, file.Close()); err != nil {
		_ = os.Remove(file.Name())
		return "", err
	}
	if move(file.Name(), name) != nil {
		return file.Name(), nil
	}
	return name, nil
}

// move gives a file another name, and never one that a file has: that may be the conversation of
// another process. The error is for what was not moved.
func move(from, to string) error {
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
