package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/view"
)

// scriptCommands are the commands of scripts, by their usage. Arguments in brackets are optional; an
// ellipsis means any number.
var scriptCommands = map[string]func(*testscript.TestScript, []string){
	"exits CODE [ARGUMENT…]": exits, "lines stdout|stderr N": lines, "holds stdout|stderr FILE": holds, "callid NAME FILE": callID,
	"waits BATCH FINGERPRINT FILE": waits, "exchange FILE FILE": exchange, "goon CODE stdout|stderr FILE": goOn, "settle FILE [FILE…]": settle,
	"made NAME FILE": madeID, "paste stdout|stderr manifest|config|key|flag [FILE] [OLD=NEW…]": paste, "serve NAME": serve, "fill FILE": fill,
}

// commands returns the commands of scripts, each with a check of the number of its arguments.
func commands() map[string]func(*testscript.TestScript, bool, []string) {
	all := map[string]func(*testscript.TestScript, bool, []string){}
	for usage, run := range scriptCommands {
		words := strings.Fields(usage)
		required, optional, _ := strings.Cut(usage, " [")
		least := len(strings.Fields(required)) - 1
		all[words[0]] = func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) < least || optional == "" && len(args) > least {
				ts.Fatalf("usage: %s", usage)
			}
			run(ts, args)
		}
	}
	return all
}

// exits runs the command and checks its exit code: exits 3 call file_read ….
func exits(ts *testscript.TestScript, args []string) {
	checkExit(ts, args[0], ts.Exec("caisson", args[1:]...))
}

// checkExit checks the exit code of a command that has ended with an error, or without one.
func checkExit(ts *testscript.TestScript, want string, err error) {
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if want != strconv.Itoa(code) {
		ts.Fatalf("the exit code is %d, want %s", code, want)
	}
}

// lines checks how many lines the last command wrote: lines stdout 2.
func lines(ts *testscript.TestScript, args []string) {
	text := ts.ReadFile(args[0])
	if n := strings.Count(text, "\n"); args[1] != strconv.Itoa(n) {
		ts.Fatalf("%s has %d lines, want %s:\n%s", args[0], n, args[1], text)
	}
}

// holds checks that a stream holds a file's text on a line: holds stdout FILE.
func holds(ts *testscript.TestScript, args []string) {
	if want := strings.TrimSpace(ts.ReadFile(args[1])); want == "" || !strings.Contains(ts.ReadFile(args[0]), want) {
		ts.Fatalf("%s does not hold %q", args[0], want)
	}
}

// callID sets a variable to the id in a file with a record: callid NAME FILE.
func callID(ts *testscript.TestScript, args []string) {
	var record struct {
		CallID string `json:"call_id"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &record))
	ts.Setenv(args[0], record.CallID)
}

// waits sets variables to the id of a paused batch, and to the fingerprint of the first call that
// needs approval, if one does: waits BATCH FINGERPRINT FILE. The file may hold events before that.
func waits(ts *testscript.TestScript, args []string) {
	lines := strings.Split(strings.TrimSpace(ts.ReadFile(args[2])), "\n")
	told := outcome{waiting: &waiting{}}
	ts.Check(json.Unmarshal([]byte(lines[len(lines)-1]), &told))
	if told.Status != executor.RequiresAction {
		ts.Fatalf("the batch is not paused")
	}
	ts.Setenv(args[0], told.Batch)
	if len(told.Approvals) > 0 {
		ts.Setenv(args[1], told.Approvals[0].Fingerprint)
	}
}

// exchange swaps the calls of two stored batches: exchange FILE FILE.
func exchange(ts *testscript.TestScript, args []string) {
	var calls [2]any
	var documents [2]map[string]any
	for i, file := range args {
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(file)), &documents[i]))
		calls[i] = documents[i]["state"].(map[string]any)["calls"]
	}
	for i, file := range args {
		documents[i]["state"].(map[string]any)["calls"] = calls[1-i]
		content, err := json.Marshal(documents[i])
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(file), content, 0o600))
	}
}

// goOn runs the command with which a hint says to resume a batch, with a file for OUTPUTS, and checks
// its exit code: goon 0 stderr outputs.json.
func goOn(ts *testscript.TestScript, args []string) {
	found := regexp.MustCompile(`(?m)resume it with: (caisson .+)$`).FindStringSubmatch(ts.ReadFile(args[1]))
	if found == nil {
		ts.Fatalf("%s has no hint to resume the batch", args[1])
	}
	checkExit(ts, args[0], ts.Exec("sh", "-c", strings.Replace(found[1], "OUTPUTS", args[2], 1)))
}

// changing matches text that differs between two runs: ids, digests, times and resource usage.
var changing = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}(_[0-9]{13})?|[0-9a-f]{64}|` +
	`,"(queue|compile)_ns":[0-9]+|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z|"(created_at|completed_at|execution_time|fuel|memory_bytes|wall_ns)":[0-9.e-]+`)

// settle replaces text in files that differs between two runs, equal texts by equal ones: settle FILE….
func settle(ts *testscript.TestScript, args []string) {
	for _, file := range args {
		seen := map[string]string{}
		text := changing.ReplaceAllStringFunc(ts.ReadFile(file), func(found string) string {
			key, _, isMember := strings.Cut(found, ":")
			switch {
			case found[0] == ',': // absent if there was nothing to wait for
				return ""
			case isMember && key[0] == '"':
				return key + ":0"
			case strings.HasSuffix(found, "Z"):
				return "TIME"
			case seen[found] == "":
				seen[found] = fmt.Sprintf("ID%d", len(seen)+1)
			}
			return seen[found]
		})
		text = strings.ReplaceAll(text, ts.Getenv("WORK"), "WORK")
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(text), 0o600))
	}
}

// madeID sets a variable to the id of the first call made by an explained one: made NAME FILE.
func madeID(ts *testscript.TestScript, args []string) {
	var told view.Call
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &told))
	if len(told.Calls) == 0 {
		ts.Fatalf("the call made none")
	}
	ts.Setenv(args[0], told.Calls[0].CallID)
}

// suggestions match hints; the group is what to paste.
var suggestions = map[string]*regexp.Regexp{
	"flag":     regexp.MustCompile(`(?m)allow it with (--.+)$`),
	"manifest": regexp.MustCompile(`(?m)must request it: (permissions: .+)$`),
	"config":   regexp.MustCompile(`(?m)in \S+, under grants: (- .+)$`),
	"key":      regexp.MustCompile(`(?m)or in \S+: (\w+: .+)$`),
}

// paste follows the last printed suggestion of a kind, with placeholders replaced: it adds a permission
// to a manifest, a grant at the end of a policy or a key at its beginning, or it sets the variables FLAG
// and VALUE.
//
//	paste stderr manifest tool.yaml
//	paste stderr config caisson.yaml HOSTDIR=workspace
//	paste stderr key caisson.yaml VALUE=demo
//	paste stderr flag HOSTDIR=workspace
func paste(ts *testscript.TestScript, args []string) {
	printed, kind, rest := ts.ReadFile(args[0]), args[1], args[2:]
	found := suggestions[kind].FindAllStringSubmatch(printed, -1)
	if len(found) == 0 {
		ts.Fatalf("%s suggests no %s:\n%s", args[0], kind, printed)
	}
	file := ""
	if kind != "flag" {
		file, rest = ts.MkAbs(rest[0]), rest[1:]
	}
	text := found[len(found)-1][1]
	for _, replacement := range rest {
		old, by, _ := strings.Cut(replacement, "=")
		if !strings.Contains(text, old) {
			ts.Fatalf("%q has no %s", text, old)
		}
		text = strings.ReplaceAll(text, old, by)
	}
	ts.Logf("pasted: %s", text)
	switch kind {
	case "flag":
		flag, value, _ := strings.Cut(text, " ")
		ts.Setenv("FLAG", flag)
		ts.Setenv("VALUE", value)
	case "key":
		ts.Check(os.WriteFile(file, []byte(text+"\n"+ts.ReadFile(file)), 0o600))
	case "config":
		ts.Check(os.WriteFile(file, []byte(ts.ReadFile(file)+"  "+text+"\n"), 0o600))
	case "manifest":
		ts.Check(os.WriteFile(file, []byte(withPermission(ts.ReadFile(file), text)), 0o600))
	}
}

// withPermission adds a permission to a manifest, or replaces the line of the permission of its kind.
func withPermission(manifest, line string) string {
	if !strings.Contains(manifest, "\npermissions:\n") {
		return manifest + line + "\n"
	}
	parts := regexp.MustCompile(`^permissions: {(\w+): (.*)}$`).FindStringSubmatch(line)
	old := regexp.MustCompile(`(?m)^  ` + parts[1] + `:.*$`)
	return old.ReplaceAllLiteralString(manifest, "  "+parts[1]+": "+parts[2])
}

// serve starts an HTTP server that runs until the script ends, and sets a variable to its port: serve
// PORT. It responds with the method and the X-Api-Key header of the request.
func serve(ts *testscript.TestScript, args []string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s with key %q of %d bytes", r.Method, r.Header.Get("X-Api-Key"), len(r.Header.Get("X-Api-Key")))
	}))
	ts.Defer(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	ts.Check(err)
	ts.Setenv(args[0], port)
}

// fill replaces $NAME in a file by the values of variables: fill FILE.
func fill(ts *testscript.TestScript, args []string) {
	text := os.Expand(ts.ReadFile(args[0]), ts.Getenv)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}
