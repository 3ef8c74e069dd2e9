package executor_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// processFolder names the folder that the processes of [TestBatchResumesInAnotherProcess] share. It is set in
// those that the test starts.
const processFolder = "CAISSON_TEST_PAUSE_FOLDER"

// TestBatchResumesInAnotherProcess: a batch pauses in one process, which ends, and resumes in the next,
// twice. No tool runs twice, each call is recorded once, and the records are in order.
func TestBatchResumesInAnotherProcess(t *testing.T) {
	if folder := os.Getenv(processFolder); folder != "" {
		stepInProcess(t, folder)
		return
	}
	folder := t.TempDir()
	ids := map[string]bool{}
	for step := range 3 {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBatchResumesInAnotherProcess$", "-test.count=1")
		command.Env = append(os.Environ(), processFolder+"="+folder)
		printed, err := command.CombinedOutput()
		require.NoError(t, err, "%s", printed)
		ids[readReport(t, folder).Process] = true
		assert.Equal(t, step < 2, readReport(t, folder).State != nil)
	}
	assert.Len(t, ids, 3, "control: each step was another process")
	report := readReport(t, folder)
	assert.Equal(t, []string{"look 1", "write 3", "erase 5", "write 6"}, linesOf(t, folder, "ran"))
	require.Len(t, report.Records, 6)
	recorded := linesOf(t, folder, "recorded")
	assert.Len(t, recorded, 6)
	for i, record := range report.Records {
		assert.Equal(t, fmt.Sprint(i+1), record.ID)
		assert.True(t, record.Result.Success)
		assert.Contains(t, recorded, record.CallID)
	}
	assert.Equal(t, 6, report.Totals.Calls)
}

// processReport is the data that a process stores for the next.
type processReport struct {
	Process string
	State   *executor.State
	Records []tool.Record
	Totals  tool.Totals
	// Approvals are those of calls that could not run yet.
	Approvals []tool.Approval
}

func readReport(t *testing.T, folder string) (r processReport) {
	t.Helper()
	text := noerr.Get(os.ReadFile(filepath.Join(folder, "report")))(t)
	require.NoError(t, json.Unmarshal(text, &r))
	return r
}

// stepInProcess begins or resumes the batch, until it pauses or ends.
func stepInProcess(t *testing.T, folder string) {
	note := func(_ context.Context, i tool.Invocation) (tool.Outcome, error) {
		appendLine(t, folder, "ran", i.Tool+" "+argument(i, "n"))
		return succeed(i.Tool), nil
	}
	recorder := &ledger{hook: func(_ context.Context, entry executor.Entry) error {
		appendLine(t, folder, "recorded", entry.Record.CallID)
		return nil
	}}
	e := newExecutor(t, executor.Options{Recorder: recorder}, newFake(t, "look", readOnly, note), newFake(t, "write", nil, note),
		newFake(t, "erase", destructive, note), newClient(t, "shell", nil))
	var report executor.Report
	_, err := os.Stat(filepath.Join(folder, "report"))
	if os.IsNotExist(err) {
		session := newSession(t, e, executor.SessionOptions{Tenant: "t"})
		var calls []tool.Call
		for i, name := range []string{"look", "shell", "write", "shell", "erase", "write"} {
			calls = append(calls, newCall(fmt.Sprint(i+1), name, fmt.Sprintf(`{"n":"%d"}`, i+1)))
		}
		report = paused(t, e, session, calls...)
	} else {
		require.NoError(t, err)
		before := readReport(t, folder)
		session := newSession(t, e, executor.SessionOptions{Tenant: "t", Approvals: before.Approvals})
		report = resume(t, e, answered(session, *before.State))
	}
	text := jsonOf(t, processReport{fmt.Sprint(os.Getpid()), report.State, report.Records, report.Totals, report.Session.Approvals()})
	require.NoError(t, os.WriteFile(filepath.Join(folder, "report"), text, 0o600))
}

func appendLine(t *testing.T, folder, name, line string) {
	t.Helper()
	file := noerr.Get(os.OpenFile(filepath.Join(folder, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600))(t)
	noerr.Get(file.WriteString(line + "\n"))(t)
	require.NoError(t, file.Close())
}

func linesOf(t *testing.T, folder, name string) (found []string) {
	t.Helper()
	text := noerr.Get(os.ReadFile(filepath.Join(folder, name)))(t)
	scanner := bufio.NewScanner(strings.NewReader(string(text)))
	for scanner.Scan() {
		found = append(found, scanner.Text())
	}
	return found
}
