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

// suspended is a conversation that was taken up from its file. While it is, the file has another
// name, so that no second process can take it up too.
type suspended struct {
	state
	file, taken string
	settled     bool // it went on, or was kept anew
}

// takeUp takes a conversation from its file. Release it.
func takeUp(file string) (*suspended, error) {
	s := &suspended{file: file, taken: fmt.Sprintf("%s.%d.taken", file, os.Getpid())}
	err := os.Rename(file, s.taken)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, failed(exitUsage, fmt.Sprintf("--resume %s: there is no such file; another process may have gone on with it", file))
	}
	if err != nil {
		return nil, err
	}
	if err := s.read(); err != nil {
		return nil, s.release(&failure{exitUsage, fmt.Sprintf("--resume %s: %v", file, err), []string{"name a file that --state has made"}, err})
	}
	return s, nil
}

func (s *suspended) read() error {
	file, err := os.Open(s.taken)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
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
	if decoder.More() || s.Schema != stateSchema || len(s.Conversation.Messages) == 0 || len(s.Batch.Pending()) == 0 {
		return state{}, errors.New("it is no conversation that waits")
	}
	return s, nil
}

// release lets go of the conversation: it goes back into its file if nothing came of it. It returns
// the error that it was given, or else its own.
func (s *suspended) release(err error) error {
	if s.settled {
		return joined(err, os.Remove(s.taken))
	}
	return joined(err, os.Rename(s.taken, s.file))
}

// suspend keeps the conversation as it waits, if there is a file for it, and returns what the
// program ends with.
func (a *agent) suspend(batch executor.State, outputs []tool.Answer, cause error) error {
	file := a.options.state
	if file == "" {
		return cause
	}
	document, err := json.Marshal(state{stateSchema, a.talk, batch, append([]tool.Answer{}, outputs...), append([]tool.Approval{}, a.session.Approvals()...)})
	if err == nil {
		err = replace(file, document)
	}
	if err != nil {
		return errors.Join(cause, fmt.Errorf("the conversation cannot be kept: %w", err))
	}
	if a.from != nil {
		a.from.settled = true
	}
	hint := "go on with --resume " + file
	if errors.Is(cause, errLater) {
		return failed(exitWaiting, "the conversation waits in "+file, hint)
	}
	known := &failure{exitFailed, cause.Error(), []string{hint}, cause}
	if errors.Is(cause, context.Canceled) {
		known.code, known.text = exitInterrupted, "interrupted; the conversation waits in "+file
	}
	return known
}

// replace writes a file that is ours alone, whole or not at all.
func replace(name string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.new") // with mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err = joined(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
