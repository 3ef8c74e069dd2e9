package answer

import (
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caisson-run/caisson/tool"
)

// cause returns the denial that explains why the tool failed, if one does, given the reason in the
// tool's words: the last one that the reason names. If the reason is only that of the system, or there
// is none, it is the last of all.
//
// Denials from before the tool read its input explain nothing, since the tool continued after them. If the tool reads
// no input, the host cannot know whether it did, and the reason decides.
func (a *Answer) cause(reason string) (tool.Denial, bool) {
	if len(reason) > maxReason { // the cost of searching for each name must not depend on the guest
		reason = reason[:maxReason]
	}
	for _, d := range slices.Backward(a.Denials) {
		if !(d.Note && !a.Unread) && a.names(reason, d) {
			return d, true
		}
	}
	refused := isSystems(lastLine(reason))
	for _, d := range slices.Backward(a.Denials) {
		if refused && !(d.Note && !a.Unread) || reason == "" && !d.Note {
			return d, true
		}
	}
	return tool.Denial{}, false
}

// maxReason is the number of bytes of a tool's reason that are searched for names.
const maxReason = 8 << 10

// lastLine returns the last line of a program's last words that is a reason: not a part of a stack
// trace, nor advice on how to get one.
func lastLine(words string) string {
	lines := strings.Split(words, "\n")
	for i, line := range slices.Backward(lines) {
		frames := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "\t")
		switch {
		case strings.TrimSpace(line) == "", line[0] == ' ', line[0] == '\t':
		case frames && (strings.HasSuffix(line, ")") || strings.HasPrefix(line, "created by ")): // Go
		case strings.HasPrefix(line, "goroutine ") && strings.HasSuffix(line, "]:"):
		case strings.HasPrefix(line, "note: run with `RUST_BACKTRACE"), line == "stack backtrace:",
			line == "stack traceback:":
		default:
			return line
		}
	}
	return words
}

// isSystems reports whether a line ends, as perror and its like in other languages make it end, with the system's
// message for the error number of a denial: EPERM, or EROFS for a directory that may only be read. Zig has names for
// them.
func isSystems(line string) bool {
	line = strings.ToLower(line)
	if number := strings.LastIndex(line, "(os error "); number >= 0 { // Rust
		line = line[:number]
	}
	line = strings.TrimRight(line, "\"')}. ")
	for _, words := range []string{"operation not permitted", "read-only file system", "permissiondenied",
		"readonlyfilesystem"} {
		if before, found := strings.CutSuffix(line, words); found {
			before = strings.TrimRight(before, " ")
			return before == "" || strings.ContainsAny(before[len(before)-1:], ":]\"'(")
		}
	}
	return false
}

// names reports whether a reason names the denied value: a path also relative to "/", to its own directory or to one
// that the manifest requests, and a URL also by its host. A name that may be any word of a sentence counts only in
// quotes, or where the sentence tells its kind.
func (a *Answer) names(reason string, d tool.Denial) bool {
	switch d.Permission {
	case "files":
		directories := []string{"/", path.Dir(d.Value) + "/"}
		for _, request := range a.Manifest.Permissions.Files {
			directories = append(directories, strings.TrimSuffix(request.Path.String(), "/")+"/")
		}
		for _, directory := range directories {
			if relative, inside := strings.CutPrefix(d.Value, directory); inside && mentions(reason, relative, isOpened) {
				return true
			}
		}
	case "network":
		if u, err := url.Parse(d.Value); err == nil && mentions(reason, u.Hostname(), isCalled("host", "server")) {
			return true
		}
	}
	return mentions(reason, d.Value,
		isCalled("tool", "tools", "call", "calls", "calling", "called", "context", "secret", "variable"))
}

// mentions reports whether a text contains a name that is not a part of a longer one. A name that may be any word must
// be in quotes, or says must accept the texts before and after it.
func mentions(text, name string, says func(before, after string) bool) bool {
	mayBeWord := isWord(name)
	for at := 0; name != ""; at++ {
		n := strings.Index(text[at:], name)
		if n < 0 {
			return false
		}
		at += n
		before, after := text[:at], text[at+len(name):]
		last, _ := utf8.DecodeLastRuneInString(before)
		first, _ := utf8.DecodeRuneInString(after)
		if isWhole(before, name, after) && (!mayBeWord || isQuote(last) && isQuote(first) || says(before, after)) {
			return true
		}
	}
	return false
}

// isWord reports whether a name may be any word or number of a sentence: Oslo, data and 1, but neither API_KEY nor
// KEY nor x.conf.
func isWord(name string) bool {
	plain := !strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	capitals := len(name) > 2 && strings.ToUpper(name) == name && strings.ToLower(name) != name
	return plain && !capitals
}

// isWhole reports whether a name between two texts is not a part of a longer name or path.
func isWhole(before, name, after string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	first, _ := utf8.DecodeRuneInString(after)
	if partOfName(last) || partOfName(first) {
		return false
	}
	if next, _ := utf8.DecodeRuneInString(strings.TrimLeft(after, "/.-")); strings.ContainsRune("/.-", first) &&
		partOfName(next) {
		return false
	}
	if last != '/' || strings.HasPrefix(name, "/") {
		return true
	}
	here, relative := strings.CutSuffix(before, "./")
	above, _ := utf8.DecodeLastRuneInString(here)
	return relative && above != '.' && !partOfName(above)
}

func partOfName(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) || c == '_' }

func isQuote(c rune) bool { return strings.ContainsRune("\"'`“”‘’«»", c) }

// operations are the words before a file's name in the errors of Go and its like.
var operations = []string{"open", "openat", "openfdat", "stat", "lstat", "read", "write", "readlink", "mkdir", "remove",
	"rename", "unlink", "unlinkat", "symlink", "link", "truncate", "chdir"}

// isOpened reports whether a name is where perror prints one: at the start of the reason or of a part of it, or after
// an operation, as in "open notes: No such file".
func isOpened(before, after string) bool {
	if !strings.HasPrefix(after, ": ") {
		return false
	}
	if before == "" || strings.HasSuffix(before, ": ") || strings.HasSuffix(before, "./") {
		return true
	}
	words := strings.Fields(before)
	return len(words) > 0 && strings.HasSuffix(before, " ") && slices.Contains(operations, words[len(words)-1])
}

// isCalled returns a function that reports whether one of some words is next to a name: "the tool search".
func isCalled(words ...string) func(before, after string) bool {
	return func(before, after string) bool {
		before = strings.TrimRight(before, ": ")
		last := before[strings.LastIndexFunc(before, func(c rune) bool { return !partOfName(c) })+1:]
		next := strings.TrimLeft(after, " ")
		if end := strings.IndexFunc(next, func(c rune) bool { return !partOfName(c) }); end >= 0 {
			next = next[:end]
		}
		return slices.Contains(words, strings.ToLower(last)) || slices.Contains(words, strings.ToLower(next))
	}
}
