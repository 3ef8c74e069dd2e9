//go:build shells

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// packages has the Debian package of each shell.
var packages = map[string]string{"bash": "bash", "zsh": "zsh", "fish": "fish"}

// starts has the arguments that start each shell without a user's configuration, and the commands that set it up.
var starts = map[string]struct {
	args  []string
	setup string
}{
	"bash": {[]string{"--noprofile", "--norc", "-i"}, "bind 'set enable-bracketed-paste off'; source <(caisson completion bash)"},
	"zsh":  {[]string{"-f", "-i"}, "unsetopt prompt_sp; autoload -Uz compinit; compinit -u -D; source <(caisson completion zsh)"},
	"fish": {[]string{"--no-config", "-i"}, "set -g fish_autosuggestion_enabled 0; caisson completion fish | source"},
}

// shellTerminal is a shell in a pseudo-terminal.
type shellTerminal struct {
	t       *testing.T
	shell   string
	home    string
	control *os.File
	mu      sync.Mutex
	screen  bytes.Buffer
}

// wrapper is the command that the shells run: it writes down its arguments, unless it is asked to complete.
const wrapper = `#!/bin/sh
case "$1" in
__complete*|completion) exec "$CAISSON" "$@" ;;
esac
printf '%s\0' "$@" >"$HOME/args.new" && mv "$HOME/args.new" "$HOME/args"
`

// startShell starts a shell in which caisson is completed, with this home.
func startShell(t *testing.T, shell, home, caisson string) *shellTerminal {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	var number, unlock int32
	ioctl := func(request uintptr, argument unsafe.Pointer) {
		raw, err := control.SyscallConn()
		require.NoError(t, err)
		require.NoError(t, raw.Control(func(fd uintptr) {
			_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(argument))
			require.Zero(t, errno)
		}))
	}
	ioctl(syscall.TIOCGPTN, unsafe.Pointer(&number))
	ioctl(syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	size := [4]uint16{50, 100}
	ioctl(syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	start := starts[shell]
	command := exec.CommandContext(t.Context(), shell, start.args...)
	command.Dir, command.Stdin, command.Stdout, command.Stderr = home, tty, tty, tty
	command.Env = []string{"HOME=" + home, "PATH=" + filepath.Join(home, "bin") + ":/usr/bin:/bin", "TERM=xterm", "LANG=C.UTF-8", "CAISSON=" + caisson,
		"XDG_STATE_HOME=" + home + "/state", "XDG_CACHE_HOME=" + home + "/cache", "HISTFILE="}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, command.Start())
	require.NoError(t, tty.Close())
	s := &shellTerminal{t: t, shell: shell, home: home, control: control}
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		buffer := make([]byte, 4096)
		for {
			n, err := control.Read(buffer)
			s.mu.Lock()
			s.screen.Write(buffer[:n])
			s.mu.Unlock()
			if err != nil { // the shell has ended
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		<-reading
		_ = control.Close()
	})
	s.typed(start.setup + "\n")
	assert.Equal(t, []string{"ready"}, s.ran("caisson ready\n"))
	return s
}

func (s *shellTerminal) typed(keys string) {
	s.t.Helper()
	_, err := s.control.WriteString(keys)
	require.NoError(s.t, err)
}

// escapes match what moves the cursor or changes colours.
var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]|\x1b[()=>].?|\x1b\\][^\x07]*\x07|\r")

func (s *shellTerminal) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return escapes.ReplaceAllString(s.screen.String(), "")
}

// ran types keys that end with a command line, and returns the arguments with which caisson was run.
func (s *shellTerminal) ran(keys string) []string {
	s.t.Helper()
	file := filepath.Join(s.home, "args")
	_ = os.Remove(file)
	s.typed(keys)
	var content []byte
	if !assert.Eventually(s.t, func() (ok bool) {
		var err error
		content, err = os.ReadFile(file)
		return err == nil
	}, 20*time.Second, 5*time.Millisecond, "%q runs nothing", keys) {
		s.t.Log(s.text())
		s.typed("\x03") // for the next one
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(content), "\x00"), "\x00")
}

// shows types keys, and waits until the shell shows texts, in any order. It then leaves the line.
func (s *shellTerminal) shows(keys string, want ...string) {
	s.t.Helper()
	s.mu.Lock()
	s.screen.Reset()
	s.mu.Unlock()
	s.typed(keys)
	if s.shell == "bash" {
		s.typed("\t") // which shows them the second time
	}
	if !assert.Eventually(s.t, func() bool {
		text := s.text()
		return !slices.ContainsFunc(want, func(part string) bool { return !strings.Contains(text, part) })
	}, 20*time.Second, 5*time.Millisecond, "%q does not show %q", keys, want) {
		s.t.Log(s.text())
	}
	s.typed("\x15") // Ctrl-U
}

// odd are values that mean something to shells.
var odd = []string{
	"two words", "it's", `say "hi"`, "a:b:c", "a=b", "$HOME", "$(touch owned)", "`touch owned`", `back\slash`, "*", "~root", "!bang", "#hash",
	"ümlaut ß", "semi;colon", "a&b|c", "{x,y}", "[z]", "<in>", "-dash", "@at", "q?",
}

// TestShells: completions in real shells. What a person types there, with Tab, becomes the arguments that it should.
func TestShells(t *testing.T) {
	directory := t.TempDir()
	binary := filepath.Join(directory, "caisson")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", binary, ".")
	output, err := build.CombinedOutput()
	require.NoError(t, err, string(output))
	testSpeed(t, binary) // while nothing else runs
	for shell, name := range packages {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			_, err := exec.LookPath(shell)
			require.NoError(t, err, "%s is missing: Debian: apt-get install %s", shell, name)
			testShell(t, shell, binary)
		})
	}
}

func testShell(t *testing.T, shell, binary string) {
	home := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(home, "tools"), os.DirFS("../../wasm-tools")))
	write := func(name, content string, mode os.FileMode) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(home, name), []byte(content), mode))
	}
	write("bin/caisson", wrapper, 0o700)
	write("odd.tool.yaml", oddTool(), 0o600)
	write("notes of mine.json", "{}", 0o600)
	write("calculator/file", "", 0o600) // no tool's name is a folder's
	for _, agent := range []string{"clerk", "researcher"} {
		set := exec.CommandContext(t.Context(), binary, "agent", "set", agent, "file_read", "--tools", filepath.Join(home, "tools"), "--state-dir", filepath.Join(home, "state", "caisson"))
		output, err := set.CombinedOutput()
		require.NoError(t, err, string(output))
	}
	s := startShell(t, shell, home, binary)
	const tools = "--tools tools"
	for typed, want := range map[string][]string{
		"caisson call " + tools + " calcu\t exp\t1+1\n":                                      {"call", "--tools", "tools", "calculator", "expression=1+1"},
		"caisson call " + tools + " calcu\texp\t'2 * (3)' pre\t3\n":                          {"call", "--tools", "tools", "calculator", "expression=2 * (3)", "precision=3"},
		"caisson call " + tools + " file_write mode=app\tpath=x\n":                           {"call", "--tools", "tools", "file_write", "mode=append", "path=x"},
		"caisson call " + tools + " file_write mo\tapp\t\n":                                  {"call", "--tools", "tools", "file_write", "mode=append"},
		"caisson call " + tools + " file_list recursive=t\t\n":                               {"call", "--tools", "tools", "file_list", "recursive=true"},
		"caisson call " + tools + " file_d\tpa\tx rec\tt\t\n":                                {"call", "--tools", "tools", "file_delete", "path=x", "recursive=true"},
		"caisson inspect " + tools + " file_rea\t\n":                                         {"inspect", "--tools", "tools", "file_read"},
		"caisson agent set new " + tools + " file_rea\tcalcu\t\n":                            {"agent", "set", "new", "--tools", "tools", "file_read", "calculator"},
		"caisson agent show cl\t\n":                                                          {"agent", "show", "clerk"},
		"caisson batch --agent re\tx\n":                                                      {"batch", "--agent", "researcher", "x"},
		"caisson batch --agent=re\tx\n":                                                      {"batch", "--agent=researcher", "x"},
		"caisson list --definitions=ant\t\n":                                                 {"list", "--definitions=anthropic"},
		"caisson batch " + tools + " --approve-tool file_del\tx\n":                           {"batch", "--tools", "tools", "--approve-tool", "file_delete", "x"},
		"caisson call " + tools + " --context project_id=a --mount /project=tools calcu\t\n": {"call", "--tools", "tools", "--context", "project_id=a", "--mount", "/project=tools", "calculator"},
		// Quotes and variables before the cursor.
		"caisson call --tools \"to\"ols calcu\t\n":                                {"call", "--tools", "tools", "calculator"},
		"caisson call --tools $HOME/tools calcu\t\n":                              {"call", "--tools", home + "/tools", "calculator"},
		"caisson call --tools ~/tools calcu\t\n":                                  {"call", "--tools", home + "/tools", "calculator"},
		"caisson call " + tools + " calculator expression='a \"b\" c' preci\t1\n": {"call", "--tools", "tools", "calculator", `expression=a "b" c`, "precision=1"},
		// Files, where they are arguments.
		"caisson call " + tools + " calculator @notes\t\n":               {"call", "--tools", "tools", "calculator", "@notes of mine.json"},
		"caisson batch notes\t\n":                                        {"batch", "notes of mine.json"},
		"caisson call " + tools + " file_write content=x path=notes\t\n": {"call", "--tools", "tools", "file_write", "content=x", "path=notes of mine.json"},
		"caisson inspect " + tools + " odd.t\t\n":                        {"inspect", "--tools", "tools", "odd.tool.yaml"},
		"caisson list --config notes\t\n":                                {"list", "--config", "notes of mine.json"},
	} {
		assert.Equal(t, want, s.ran(typed), "%s", typed)
	}

	// Each value is inserted so that the shell reads it unchanged: from its first characters, and within quotes.
	for i, value := range odd {
		want := []string{"call", "--tools", "odd.tool.yaml", "odd", fmt.Sprintf("value=%02d %s", i, value)}
		for _, typed := range []string{fmt.Sprintf("value=%02d\t", i), fmt.Sprintf("'value=%02d\t", i), fmt.Sprintf("\"value=%02d\t", i), fmt.Sprintf("value='%02d\t", i)} {
			if shell == "zsh" && strings.HasPrefix(typed, "value='") {
				typed = fmt.Sprintf("value=%02d\\ \t", i)
			}
			assert.Equal(t, want, s.ran("caisson call --tools odd.tool.yaml odd "+typed+"\n"), "%s", typed)
		}
	}
	// What values have in common is inserted, and quoted.
	want := []string{"call", "--tools", "odd.tool.yaml", "odd", "value=in common; one"}
	assert.Equal(t, want, s.ran("caisson call --tools odd.tool.yaml odd value=in\to\t\n"))
	assert.Equal(t, want, s.ran("caisson call --tools odd.tool.yaml odd 'value=in\to\t\n"))

	s.shows("caisson call "+tools+" file_\t", "file_exists", "File exists", "file_read", "Read file")
	s.shows("caisson call "+tools+" calculator \t", "expression=", "The expression, such as")
	s.shows("caisson agent show \t", "clerk", "researcher")

	// The shell executes nothing of the typed text.
	s.shows("caisson call "+tools+" $(touch owned) `touch owned` (touch owned) 'a'$(touch owned) calcu\t", "owned) calcu")
	assert.Equal(t, []string{"done"}, s.ran("caisson done\n"))
	assert.NoFileExists(t, filepath.Join(home, "owned"))
}

// oddTool returns a manifest whose parameter has the values odd.
func oddTool() string {
	values := []string{"in common; one", "in common; two"}
	for i, value := range odd {
		values = append(values, fmt.Sprintf("%02d %s", i, value))
	}
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = "'" + strings.ReplaceAll(value, "'", "''") + "'"
	}
	return "schema: caisson/v1\nname: odd\ndescription: Odd.\nexecution: client\nparameters: {type: object, properties: {value: {type: string, enum: [" + strings.Join(quoted, ", ") + "]}}}\n"
}

// testSpeed: with 50 tools, a shell has its answer in less than 100 ms.
func testSpeed(t *testing.T, binary string) {
	folder := t.TempDir()
	manifest, err := os.ReadFile("../../wasm-tools/files/file_write.tool.yaml")
	require.NoError(t, err)
	for i := range 50 {
		name := fmt.Sprintf("page_number_%d", i)
		content := regexp.MustCompile(`(?m)^name: .*$`).ReplaceAll(manifest, nil)
		require.NoError(t, os.WriteFile(filepath.Join(folder, name+".tool.yaml"), append([]byte("name: "+name+"\n"), content...), 0o600))
	}
	for _, words := range [][]string{{""}, {"page_number_7", ""}, {"page_number_7", "mode="}} {
		var took []time.Duration
		for range 15 {
			began := time.Now()
			command := exec.CommandContext(t.Context(), binary, append([]string{"__complete", "call", "--tools", folder, "--cache-dir", filepath.Join(folder, "cache")}, words...)...)
			output, err := command.Output()
			took = append(took, time.Since(began))
			require.NoError(t, err)
			require.GreaterOrEqual(t, bytes.Count(output, []byte("\n")), 3)
		}
		slices.Sort(took)
		t.Logf("%q: %v to %v, half within %v", words, took[0], took[len(took)-1], took[len(took)/2])
		assert.Less(t, took[len(took)/2], 100*time.Millisecond)
	}
}
