package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// FuzzState: a file may hold anything. What is read is written again as the same.
func FuzzState(f *testing.F) {
	kept, err := os.ReadFile(filepath.Join("testdata", "state.json"))
	require.NoError(f, err)
	s, err := parseState(kept)
	require.NoError(f, err)
	require.Len(f, s.Outputs, 1)
	f.Add(kept)
	f.Add([]byte(`{"schema":"caisson-agent/v1","conversation":{"messages":[null]},"batch":{"version":"caisson-state/v2"}}`))
	f.Add([]byte(`{"schema":"caisson-agent/v1"} {}`))
	f.Add(bytes.Replace(kept, []byte(`"tokens":`), []byte(`"tokens":-`), 1))
	f.Fuzz(func(t *testing.T, document []byte) {
		s, err := parseState(document)
		if err != nil {
			return
		}
		require.NotEmpty(t, s.Batch.Pending())
		require.GreaterOrEqual(t, s.Conversation.Tokens, int64(0))
		written, err := json.Marshal(s)
		require.NoError(t, err)
		again, err := parseState(written)
		require.NoError(t, err)
		rewritten, err := json.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(written), string(rewritten))
	})
}

// TestKeptConversationsReplaceNothing: a file that has the name by then stays, and so does what was
// to be kept, beside it.
func TestKeptConversationsReplaceNothing(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "state.json")
	first, err := keep(file, []byte("one"))
	require.NoError(t, err)
	assert.Equal(t, file, first)
	second, err := keep(file, []byte("two"))
	require.NoError(t, err)
	assert.NotEqual(t, file, second)
	for name, want := range map[string]string{file: "one", second: "two"} {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.Equal(t, want, string(content))
		info, err := os.Stat(name)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	_, err = keep(filepath.Join(folder, "none", "state.json"), []byte("three"))
	require.Error(t, err)
	assert.Len(t, names(t, folder), 2, "nothing else is left beside them")
}

// names returns the names of the files in a folder.
func names(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// waiting returns a world in which a conversation waits in a file.
func waiting(t *testing.T) (w *world, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "state.json")
	w = newWorld(t, script(t, "delete")...)
	w.typed = "l\n"
	require.Equal(t, exitWaiting, w.run(t, "--state", file, "Tidy up.").code)
	return w, file
}

// TestTwoAgentsWithOneFile: the second one, which began before there was a file, keeps its
// conversation elsewhere and says where.
func TestTwoAgentsWithOneFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	w := newWorld(t, script(t, "delete")...)
	w.typed = "l\n"
	w.noticed = func(noted string) {
		if strings.Contains(noted, "[y]es") {
			require.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
		}
	}
	ran := w.run(t, "--state", file, "Tidy up.")
	assert.Equal(t, exitWaiting, ran.code)
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "precious", string(content))
	_, hint, found := strings.Cut(ran.errors, "agent: hint: go on with --resume ")
	require.True(t, found, ran.errors)
	w.typed, w.noticed = "y\n", nil
	ran = w.run(t, "--resume", strings.TrimSpace(hint))
	require.Zero(t, ran.code, ran.errors)
	assert.False(t, w.hasFile(t))
	assert.Equal(t, []string{"state.json"}, names(t, filepath.Dir(file)))
}

// TestAConversationGoesBackToNoOther: a file that has appeared while the conversation was taken up
// stays, and the person is told where the conversation is. The control is a name that is free.
func TestAConversationGoesBackToNoOther(t *testing.T) {
	w, file := waiting(t)
	s, err := takeUp(file)
	require.NoError(t, err)
	require.ErrorIs(t, s.release(context.Canceled), context.Canceled)
	assert.Equal(t, []string{"state.json"}, names(t, filepath.Dir(file)))

	for _, cause := range []error{context.Canceled, failed(exitUsage, "no", "one"), nil} {
		s, err = takeUp(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
		released := s.release(cause)
		if cause != nil {
			require.ErrorIs(t, released, cause)
		}
		var known *failure
		require.ErrorAs(t, released, &known)
		assert.Equal(t, "the conversation is still there: go on with --resume "+s.taken, known.hints[len(known.hints)-1])
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, "precious", string(content))
		require.NoError(t, os.Rename(s.taken, file))
	}
	w.typed = "y\n"
	assert.Zero(t, w.run(t, "--resume", file).code)
	assert.False(t, w.hasFile(t))
}

// TestAProcessThatWasKilled leaves the conversation under another name, which the next is told of.
func TestAProcessThatWasKilled(t *testing.T) {
	w, file := waiting(t)
	s, err := takeUp(file)
	require.NoError(t, err)
	require.NotNil(t, s) // and is never released
	ran := w.run(t, "--resume", file)
	assert.Equal(t, exitUsage, ran.code)
	assert.Contains(t, ran.errors, file+".*.taken")
	left, err := filepath.Glob(file + ".*.taken")
	require.NoError(t, err)
	require.Len(t, left, 1)
	w.typed = "y\n"
	ran = w.run(t, "--resume", left[0])
	require.Zero(t, ran.code, ran.errors)
	assert.False(t, w.hasFile(t))
	assert.Empty(t, names(t, filepath.Dir(file)))
}

// TestWhatOthersCanWriteApprovesNothing: the file holds approvals, so that whoever can write it
// could approve. The control is the same file that only others can read.
func TestWhatOthersCanWriteApprovesNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // modes do not say there who can write a file
	}
	for mode, taken := range map[os.FileMode]bool{0o600: true, 0o644: true, 0o620: false, 0o602: false, 0o666: false} {
		_, file := waiting(t)
		require.NoError(t, os.Chmod(file, mode))
		s, err := takeUp(file)
		if taken {
			require.NoError(t, err, mode)
			require.NoError(t, s.release(nil))
			continue
		}
		require.ErrorIs(t, err, errWritable, mode)
		var known *failure
		require.ErrorAs(t, err, &known)
		assert.Equal(t, exitUsage, known.code)
		assert.Equal(t, []string{"see what it says; if it is as you have left it: chmod go-w " + file}, known.hints)
		assert.Equal(t, []string{"state.json"}, names(t, filepath.Dir(file)), "it is where it was")
	}
}
